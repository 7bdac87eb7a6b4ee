"""A learning switch for os-ken, OpenFlow 1.0, 1.3 and 1.4: the controller `os-ken` of `weir bench controller`.

Packets to a known address get an entry with the packet's buffer, all others are flooded, as in os-ken's examples. With
--observe-links it discovers links by os-ken's own topology application, as `weir bench rfc8456` asks for, and answers
at the port WEIR_BENCH_NORTHBOUND over HTTP: /topology with the numbers of switches and links, /flows with the number of
entries it has provisioned, /path?src=MAC&dst=MAC by provisioning one.

os-ken's loop of discovery (Switches.lldp_loop in os_ken/topology/switches.py) waits without a time-out whenever all
ports are due at a time, for example after a busy second: then no discovery message is sent until a switch connects or
a port changes. So this application wakes the loop each second, which sends what is due and nothing else.
"""
import os
import sys
import threading
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, make_server

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3, ofproto_v1_4

VERSIONS = {"1.0": ofproto_v1_0, "1.3": ofproto_v1_3, "1.4": ofproto_v1_4}
OBSERVES = "--observe-links" in sys.argv
LLDP = b"\x88\xcc"
WAKES_EVERY_S = 1
if OBSERVES:
    from os_ken.topology import api, switches  # noqa: F401 (registers --observe-links)


class NotKnown(Exception):
    """A host or a way that is not known, or not yet."""


class SilentHandler(WSGIRequestHandler):
    def log_message(self, *args):
        pass


class Learning(app_manager.OSKenApp):
    OFP_VERSIONS = [VERSIONS[os.environ["WEIR_BENCH_OPENFLOW"]].OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}
        self.datapaths = {}
        self.entries = set()
        if OBSERVES:
            port = int(os.environ["WEIR_BENCH_NORTHBOUND"])
            server = make_server("127.0.0.1", port, self.northbound, handler_class=SilentHandler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            hub.spawn(self.wake_discovery)

    @staticmethod
    def wake_discovery():
        while True:
            hub.sleep(WAKES_EVERY_S)
            discovery = app_manager.lookup_service_brick("switches")
            if discovery is not None:
                discovery.lldp_event.set()

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def features(self, event):
        datapath = event.msg.datapath
        self.datapaths[datapath.id] = datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        if ofproto.OFP_VERSION > ofproto_v1_0.OFP_VERSION:
            actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
            self.add(datapath, parser.OFPMatch(), actions, 0, ofproto.OFP_NO_BUFFER)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        if message.data[12:14] == LLDP:
            return
        datapath = message.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        is_first = ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
        in_port = message.in_port if is_first else message.match["in_port"]
        dst, src = message.data[:6], message.data[6:12]
        ports = self.ports.setdefault(datapath.id, {})
        ports[src] = in_port
        actions = [parser.OFPActionOutput(ports.get(dst, ofproto.OFPP_FLOOD))]
        if dst in ports:
            self.add_pair(datapath, in_port, (src, dst), actions, message.buffer_id)
            if message.buffer_id != ofproto.OFP_NO_BUFFER:
                return
        data = message.data if message.buffer_id == ofproto.OFP_NO_BUFFER else None
        datapath.send_msg(parser.OFPPacketOut(
            datapath=datapath, buffer_id=message.buffer_id, in_port=in_port, actions=actions, data=data))

    def add_pair(self, datapath, in_port, pair, actions, buffer_id):
        parser = datapath.ofproto_parser
        self.entries.add((datapath.id, in_port, pair))
        if datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            match = parser.OFPMatch(in_port=in_port, dl_src=pair[0], dl_dst=pair[1])
        else:
            text = [":".join("%02x" % byte for byte in mac) for mac in pair]
            match = parser.OFPMatch(in_port=in_port, eth_src=text[0], eth_dst=text[1])
        self.add(datapath, match, actions, 1, buffer_id)

    @staticmethod
    def add(datapath, match, actions, priority, buffer_id):
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        fields = dict(datapath=datapath, match=match, priority=priority, buffer_id=buffer_id, command=ofproto.OFPFC_ADD)
        if ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
            fields.update(cookie=0, actions=actions)
        else:
            apply = parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)
            fields.update(instructions=[apply])
        datapath.send_msg(parser.OFPFlowMod(**fields))

    def northbound(self, environ, start_response):
        try:
            status, text = "200 OK", self.answer(environ["PATH_INFO"], parse_qs(environ.get("QUERY_STRING", "")))
        except NotKnown as error:
            status, text = "409 Conflict", str(error)
        except (KeyError, ValueError) as error:
            status, text = "400 Bad Request", "%s: %s" % (type(error).__name__, error)
        start_response(status, [("Content-Type", "text/plain")])
        return [(text + "\n").encode()]

    def answer(self, path, query):
        if path == "/topology":
            return "%d %d" % (len(api.get_all_switch(self)), len(api.get_all_link(self)))
        if path == "/flows":
            return str(len(self.entries))
        if path == "/path":
            return self.provision(*[bytes.fromhex(query[name][0].replace(":", "")) for name in ("src", "dst")])
        raise ValueError("no such resource " + path)

    def provision(self, src, dst):
        """Adds entries from the switch where src is to the one where dst is, by the links that were discovered."""
        links = api.get_all_link(self)
        inner = {(end.dpid, end.port_no) for link in links for end in (link.src, link.dst)}
        places = {mac: (dpid, port) for dpid, ports in self.ports.items() for mac, port in ports.items()
                  if mac in (src, dst) and (dpid, port) not in inner}
        if src not in places or dst not in places:
            raise NotKnown("a host is not known")
        at, in_port = places[src]
        last, out_port = places[dst]
        before = {at: None}
        queue = [at]
        for node in queue:
            for link in links:
                if link.src.dpid == node and link.dst.dpid not in before:
                    before[link.dst.dpid] = link
                    queue.append(link.dst.dpid)
        if last not in before:
            raise NotKnown("no way is known, by %d directions of links" % len(links))
        hops = []
        node = last
        while before[node] is not None:
            hops.insert(0, before[node])
            node = before[node].src.dpid
        for link in hops + [None]:
            datapath = self.datapaths[at]
            port = link.src.port_no if link else out_port
            actions = [datapath.ofproto_parser.OFPActionOutput(port)]
            self.add_pair(datapath, in_port, (src, dst), actions, datapath.ofproto.OFP_NO_BUFFER)
            if link:
                at, in_port = link.dst.dpid, link.dst.port_no
        return "ok"


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    cfg.CONF(args=sys.argv[1:], project="os_ken")
    apps = ["osken_learning", "os_ken.controller.ofp_handler"]
    app_manager.AppManager.run_apps(apps + (["os_ken.topology.switches"] if OBSERVES else []))
