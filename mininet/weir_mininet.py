"""weir as a switch of Mininet.

    mn --custom weir_mininet.py --switch weir --topo linear,3 --controller remote
    mn --custom weir_mininet.py --switch weir,profile=at-x510 ...

or, in Python:

    from weir_mininet import WeirSwitch
    net.addSwitch('s1', cls=WeirSwitch, profile='at-x510')

Each switch is a process `weir switch` with the node's interfaces as ports. See README.md beside this file.
"""

import ctypes
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from mininet.link import TCIntf
from mininet.log import debug, warn
from mininet.node import RemoteController, Switch

# Where `weir` is looked for when neither the parameter nor the variable WEIR says: in PATH, then in this project's build folders.
# (`mn --custom` runs this file without telling it its name.)
_FILE = os.path.abspath((lambda: None).__code__.co_filename)
_PROJECT = os.path.dirname(os.path.dirname(_FILE))
_BUILDS = [os.path.join(_PROJECT, 'target', build, 'weir') for build in ('release', 'debug')]
# Seconds that a switch may take to start, and to end.
_START_S = 15
_STOP_S = 5
# Seconds that a controller may take to accept a connection before it counts as absent.
_ACCEPT_S = 5
# What `weir ctl` answers itself; everything else that `dpctl` is asked goes to ovs-ofctl.
_CTL = {
    'show', 'dump-flows', 'add-flow', 'mod-flows', 'del-flows', 'add-group', 'mod-group', 'del-groups', 'dump-groups',
    'dump-group-stats', 'add-meter', 'mod-meter', 'del-meters', 'dump-meters', 'meter-stats', 'dump-ports', 'counters',
    'trace', 'perf', 'set-queue', 'del-queue', 'dump-queues', 'profile', 'vs',
}
_PR_SET_PDEATHSIG = 1


class WeirSwitch(Switch):
    """An OpenFlow switch that is a process of weir."""

    def __init__(self, name, profile=None, failMode='secure', kind='af_packet', weir=None, batch=None, **params):
        """name: the node's name
           profile: which device it behaves like in time: a name that `weir profile list` shows, or a profile file
           failMode: without a controller: 'secure' keeps to the tables, 'standalone' forwards as a learning bridge
           kind: how interfaces are opened: 'af_packet' or 'af_xdp'
           weir: path of the command
           opts: further arguments of `weir switch`, as on its command line"""
        # Mininet knows better than a caller whether it starts switches together; each is its own process here.
        del batch
        Switch.__init__(self, name, **params)
        if failMode not in ('secure', 'standalone'):
            raise Exception('%s: failMode: found %r, expected secure or standalone' % (name, failMode))
        if kind not in ('af_packet', 'af_xdp'):
            raise Exception('%s: kind: found %r, expected af_packet or af_xdp' % (name, kind))
        self.profile = profile
        self.failMode = failMode
        self.kind = kind
        self.weir = weir or self.find()
        self.process = None
        self.folder = None
        self.hasControllers = False

    @classmethod
    def find(cls):
        """The weir command."""
        given = os.environ.get('WEIR')
        places = [given] if given else [shutil.which('weir')] + _BUILDS
        for place in places:
            if place and os.access(place, os.X_OK):
                return place
        raise Exception('found no weir command in %s, expected one: build it with `cargo build --release`, put it in PATH, '
                        'or say where it is: WEIR=PATH' % (given or 'PATH or ' + ' or '.join(_BUILDS)))

    @classmethod
    def setup(cls):
        """Called by Mininet once before the first switch starts."""
        cls.find()

    def command(self, controllers):
        """The command that starts the switch under these controllers."""
        command = [self.weir, 'switch', '--name', self.name, '--dpid', self.dpid, '--fail-mode', self.failMode,
                   '--control-socket', self.socket(), '--listen', 'punix:' + self.openflow()]
        for intf in self.intfList():
            # The loopback interface, at port 0, is Mininet's own.
            if self.ports[intf] and not intf.IP():
                command += ['--port', self.port(intf)]
        for controller in controllers:
            command += ['--controller', '%s:%s:%d' % (controller.protocol, controller.IP(), controller.port)]
        if self.listenPort:
            command += ['--listen', 'ptcp:%d' % self.listenPort]
        if self.profile is not None:
            command += ['--profile', str(self.profile)]
        return command + shlex.split(self.opts)

    def port(self, intf):
        """An interface as a port of the switch: with the number that it has in Mininet."""
        # What TCLink sets is the kernel's to keep: frames have to go through its queueing, which they otherwise pass by.
        shaped = isinstance(intf, TCIntf) and self.kind == 'af_packet'
        return '%d=%s:%s%s' % (self.ports[intf], self.kind, intf.name, ',qdisc=on' if shaped else '')

    def socket(self):
        """The switch's control socket."""
        return os.path.join(self.folder, 'ctl')

    def openflow(self):
        """Where the switch listens for tools."""
        return os.path.join(self.folder, 'openflow')

    def log(self):
        """What the switch says."""
        return os.path.join(self.folder, 'log')

    def start(self, controllers):
        """Starts the switch; when this returns it forwards."""
        self.folder = tempfile.mkdtemp(prefix='weir-%s-' % self.name)
        self.hasControllers = bool(controllers)
        command = self.command(controllers)
        if self.inNamespace:
            command = ['mnexec', '-a', str(self.pid)] + command
        debug(' '.join(command), '\n')
        with open(self.log(), 'wb') as log:
            # Its own session: Ctrl-C at Mininet's prompt is not meant for switches.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                            start_new_session=True, preexec_fn=_end_with_parent())
        problem = self.awaitReady()
        if problem:
            with open(self.log(), errors='replace') as log:
                said = log.read().strip()
            self.end()
            raise Exception('%s: weir switch %s: %s' % (self.name, problem, said or 'it said nothing'))

    def awaitReady(self):
        """Waits for the line that says that the switch is ready; what is wrong if it does not come."""
        deadline = time.monotonic() + _START_S
        line = b''
        while not line.endswith(b'\n'):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return 'was not ready within %d s' % _START_S
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                return 'ended with status %d' % self.process.wait()
            line += piece
        debug(line.decode(errors='replace'))
        return None

    def stop(self, deleteIntfs=True):
        """Stops the switch and removes what it left."""
        self.end()
        super().stop(deleteIntfs)

    def end(self):
        """Ends the process, by its id."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                warn('%s: weir switch does not end, and is killed\n' % self.name)
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
            self.process = None
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def ctl(self, *args):
        """Runs `weir ctl` on the switch; what it prints."""
        return _output([self.weir, 'ctl', '--socket', self.socket()] + [str(arg) for arg in args])

    def dpctl(self, *args):
        """Mininet's command `dpctl`: `weir ctl` for what it knows, ovs-ofctl for everything else."""
        if self.process is None:
            return '%s does not run\n' % self.name
        if args and args[0] in _CTL:
            return self.ctl(*args)
        if not shutil.which('ovs-ofctl'):
            return '%s: weir ctl knows no %s, and ovs-ofctl is not installed\n' % (self.name, ' '.join(args[:1]))
        words = [str(arg) for arg in args]
        return _output(['ovs-ofctl', '-O', 'OpenFlow10,OpenFlow13'] + words[:1] + ['unix:' + self.openflow()] + words[1:])

    def connected(self):
        """Whether a controller has the switch; one that needs none is ready as it is."""
        if self.process is None:
            return False
        if not self.hasControllers:
            return True
        try:
            channels = json.loads(self.ctl('--json', 'show')).get('channels', [])
        except ValueError:
            return False
        # The state of one that is up is an object with the version.
        return any('up' in channel['state'] for channel in channels)

    def attach(self, intf):
        """Adds an interface that came later."""
        intf = self.intf(intf)
        return self.ctl('add-port', self.port(intf))

    def detach(self, intf):
        """Removes an interface."""
        return self.ctl('del-port', str(self.ports[self.intf(intf)]))


class WeirRemote(RemoteController):
    """Mininet's controller that runs elsewhere, found by a connection instead of by telnet. A controller says hello at once; when those bytes arrive
    before telnet ends, Mininet reads a byte 1 among them as the announcement of a process id, and waits for the rest without end."""

    def isListening(self, ip, port):
        """Whether a controller accepts connections at an address and a port; warns if none does."""
        if self.inNamespace:
            # This process has another network than the node.
            return super().isListening(ip, port)
        try:
            socket.create_connection((ip, port), _ACCEPT_S).close()
        except OSError as error:
            warn('Unable to contact the remote controller at %s:%d: %s\n' % (ip, port, error))
            return False
        return True


def _end_with_parent():
    """What makes a process end when this one does, however that comes about. By threads other than the main one it is not asked for: the kernel takes
    the end of a thread for that of the process."""
    if threading.current_thread() is not threading.main_thread():
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _output(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors='replace')


# What `mn --custom` looks for: `--switch weir`, and a `--controller remote` in place of Mininet's.
switches = {'weir': WeirSwitch}
controllers = {'remote': WeirRemote}
