# SPDX-License-Identifier: Apache-2.0
"""A client of the log port, written from docs/log_port.md alone."""
import http.client
import json
import re
import time
import urllib.parse

import pyarrow.ipc


class Refused(Exception):
    def __init__(self, status, body):
        super().__init__(status, body)
        self.status, self.code, self.body = status, body.get("code"), body


class Lost(Exception):
    """No answer, or a cut one: nobody knows, and the same may be asked again."""


class Page:
    def __init__(self, headers, table):
        self.cursor, self.end = headers["Sluice-Cursor"], headers["Sluice-Log-End"]
        self.flags = re.findall(r"[A-Z_]+", headers.get("Sluice-Flags", ""))
        self.table, self.rows = table, table.to_pylist() if table is not None else []
        assert len(self.rows) == int(headers["Sluice-Rows"])


class Port:
    """One connection, made anew after each failure."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def ask(self, method, path, body=None, timeout=60):
        try:
            self.connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
            self.connection.request(method, path, json.dumps(body) if body is not None else None)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as lost:
            self.close()
            raise Lost(str(lost)) from lost
        if answer.status >= 400:
            try:
                refusal = json.loads(content)
            except ValueError:
                refusal = {"message": content.decode()}
            raise Refused(answer.status, refusal)
        return answer, content

    def json(self, method, path, body=None):
        answer, content = self.ask(method, path, body)
        assert answer.headers["Content-Type"] == "application/json"
        return json.loads(content)

    def page(self, table=None, after=None, group=0, **more):
        asked = {"table": table, "after": after, **more}
        query = urllib.parse.urlencode({k: v for k, v in asked.items() if v is not None})
        answer, content = self.ask("GET", f"/v1/log/{group}/rows?{query}")
        if answer.status == 204:
            assert not content
            return Page(answer.headers, None)
        assert answer.headers["Content-Type"] == "application/vnd.apache.arrow.stream"
        return Page(answer.headers, pyarrow.ipc.open_stream(content).read_all())

    def put(self, name, **asked):
        return self.json("PUT", f"/v1/consumers/{name}", asked)

    def ack(self, name, cursor, **who):
        _, _, term, seq = cursor.split("/")
        return self.json("POST", f"/v1/consumers/{name}/ack", {"term": int(term), "seq": int(seq), **who})

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Follower:
    """Keeps rows and cursor together, as a client has to, and asks again whatever becomes of the server."""

    def __init__(self, port, table, consumer=None, member=None, owner=None, ttl_ms=60000, **more):
        self.port, self.table, self.consumer, self.more = Port(port), table, consumer, more
        self.who = {k: v for k, v in (("member", member), ("owner", owner)) if v is not None}
        self.rows, self.cursor, self.lost, self.flags, self.ttl_ms = [], None, 0, set(), ttl_ms
        self.is_known = consumer is None

    def step(self, wait_ms=200):
        """One page, or nothing if the server did not answer."""
        try:
            if not self.is_known:
                told = self.port.put(self.consumer, table=self.table, ttl_ms=self.ttl_ms, **self.who)
                self.cursor = self.cursor or told["cursor"]
                self.is_known = True
            page = self.port.page(self.table, self.cursor or "0", wait_ms=wait_ms, consumer=self.consumer,
                                  **self.who, **self.more)
        except Lost:
            self.lost += 1
            time.sleep(0.05)
            return None
        except Refused as refused:
            if refused.status != 503:
                raise
            time.sleep(0.05)
            return None
        self.rows.extend(page.rows)
        self.cursor = page.cursor
        self.flags.update(page.flags)
        return page

    def acknowledge(self):
        try:
            self.flags.update(self.port.ack(self.consumer, self.cursor, **self.who)["flags"])
        except Lost:
            self.lost += 1

    def follow_to(self, seq, seconds=60, group=0):
        """Until the cursor stands at that entry or behind it."""
        deadline = time.monotonic() + seconds
        while self.seq < seq:
            assert time.monotonic() < deadline, (self.cursor, seq)
            self.step()
        return self

    @property
    def seq(self):
        return int(self.cursor.split("/")[3].split(".")[0]) if self.cursor else 0
