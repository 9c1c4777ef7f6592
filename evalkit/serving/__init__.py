"""What both servers of a trial are made of: HTTP/1.1 on a socket, and JSON as it travels.

``http1`` reads requests and writes answers, ``delivery`` is an answer, ``jsontext`` reads
and writes JSON exactly. What is answered is the business of those above.
"""
