"""weir as a switch of Mininet.

    mn --custom weir_mininet.py --switch weir --topo linear,3 --controller remote
    mn --custom weir_mininet.py --switch weir,profile=at-x510 ...

or, in Python:

    from weir_mininet import WeirSwitch
    net.addSwitch('s1', cls=WeirSwitch, profile='at-x510')

Each switch is a process `weir switch` whose ports are the interfaces of the node. README.md in this folder has more.
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

# Search places for `weir` if neither the parameter `weir` nor the variable WEIR names it: PATH, then this project's
# build folders. The file's own path comes from a code object, because `mn --custom` runs this file without setting
# __file__.
_FILE = os.path.abspath((lambda: None).__code__.co_filename)
_PROJECT = os.path.dirname(os.path.dirname(_FILE))
_BUILDS = [os.path.join(_PROJECT, 'target', build, 'weir') for build in ('release', 'debug')]
# Maximum time for a switch to start, and to end, in seconds.
_START_S = 15
_STOP_S = 5
# Maximum time for a controller to accept a connection, in seconds; after that it counts as absent.
_ACCEPT_S = 5
# Commands of `dpctl` that `weir ctl` carries out; all others go to ovs-ofctl.
_CTL = {
    'show', 'dump-flows', 'add-flow', 'mod-flows', 'del-flows', 'add-group', 'mod-group', 'del-groups', 'dump-groups',
    'dump-group-stats', 'add-meter', 'mod-meter', 'del-meters', 'dump-meters', 'meter-stats', 'dump-ports', 'counters',
    'trace', 'perf', 'set-queue', 'del-queue', 'dump-queues', 'profile', 'vs',
}
_PR_SET_PDEATHSIG = 1


class WeirSwitch(Switch):
    """A Mininet switch node that runs a `weir switch` process."""

    def __init__(self, name, profile=None, failMode='secure', kind='af_packet', weir=None, batch=None, **params):
        """Creates the switch; start() runs it.

           name: name of the node
           profile: device whose timing the switch reproduces: a name from `weir profile list`, or a profile file
           failMode: behaviour without a controller: 'secure' uses only the flow tables, 'standalone' forwards as a
                     learning bridge
           kind: kind of the ports: 'af_packet' or 'af_xdp'
           weir: path of the weir command
           opts: further arguments of `weir switch`, as on its command line"""
        # `batch` asks Mininet to start several switches with one command; each switch is its own process here.
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
        """Returns the path of the weir command. Raises an exception if there is none."""
        given = os.environ.get('WEIR')
        places = [given] if given else [shutil.which('weir')] + _BUILDS
        for place in places:
            if place and os.access(place, os.X_OK):
                return place
        raise Exception('found no weir command in %s, expected one: build it with `cargo build --release`, put it in PATH, '
                        'or say where it is: WEIR=PATH' % (given or 'PATH or ' + ' or '.join(_BUILDS)))

    @classmethod
    def setup(cls):
        """Checks that the weir command exists. Mininet calls this once, before the first switch starts."""
        cls.find()

    def command(self, controllers):
        """Returns the command line, as a list, that starts the switch with these controllers."""
        command = [self.weir, 'switch', '--name', self.name, '--dpid', self.dpid, '--fail-mode', self.failMode,
                   '--control-socket', self.socket(), '--listen', 'punix:' + self.openflow()]
        for intf in self.intfList():
            # Port 0 is the loopback interface, which Mininet adds; it is no port of the switch.
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
        """Returns the argument that makes an interface a port, with the port number that it has in Mininet."""
        # The kernel's queueing discipline enforces the settings of a TCLink. Frames bypass it unless the port has
        # qdisc=on.
        shaped = isinstance(intf, TCIntf) and self.kind == 'af_packet'
        return '%d=%s:%s%s' % (self.ports[intf], self.kind, intf.name, ',qdisc=on' if shaped else '')

    def socket(self):
        """Returns the path of the switch's control socket."""
        return os.path.join(self.folder, 'ctl')

    def openflow(self):
        """Returns the path of the socket at which the switch accepts OpenFlow connections of tools."""
        return os.path.join(self.folder, 'openflow')

    def log(self):
        """Returns the path of the file with the switch's standard error."""
        return os.path.join(self.folder, 'log')

    def start(self, controllers):
        """Starts the switch, and returns when it forwards. Raises an exception with the log if it does not start."""
        self.folder = tempfile.mkdtemp(prefix='weir-%s-' % self.name)
        self.hasControllers = bool(controllers)
        command = self.command(controllers)
        if self.inNamespace:
            command = ['mnexec', '-a', str(self.pid)] + command
        debug(' '.join(command), '\n')
        with open(self.log(), 'wb') as log:
            # A session of its own, so that Ctrl-C at Mininet's prompt does not end the switch.
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                            start_new_session=True, preexec_fn=_end_with_parent())
        problem = self.awaitReady()
        if problem:
            with open(self.log(), errors='replace') as log:
                said = log.read().strip()
            self.end()
            raise Exception('%s: weir switch %s: %s' % (self.name, problem, said or 'it said nothing'))

    def awaitReady(self):
        """Waits for the line that says that the switch is ready. Returns None, or the problem if no line arrives."""
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
        """Stops the switch and removes its files and, if `deleteIntfs`, its interfaces."""
        self.end()
        super().stop(deleteIntfs)

    def end(self):
        """Ends the process of the switch, with SIGKILL if SIGTERM does not suffice, and removes its files."""
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
        """Runs `weir ctl` on the switch and returns its output."""
        return _output([self.weir, 'ctl', '--socket', self.socket()] + [str(arg) for arg in args])

    def dpctl(self, *args):
        """Runs Mininet's command `dpctl` and returns the output: `weir ctl` for commands in _CTL, else ovs-ofctl."""
        if self.process is None:
            return '%s does not run\n' % self.name
        if args and args[0] in _CTL:
            return self.ctl(*args)
        if not shutil.which('ovs-ofctl'):
            return '%s: weir ctl knows no %s, and ovs-ofctl is not installed\n' % (self.name, ' '.join(args[:1]))
        words = [str(arg) for arg in args]
        return _output(['ovs-ofctl', '-O', 'OpenFlow10,OpenFlow13'] + words[:1] + ['unix:' + self.openflow()] + words[1:])

    def connected(self):
        """Returns True if a controller is connected, or if the running switch has no controllers configured."""
        if self.process is None:
            return False
        if not self.hasControllers:
            return True
        try:
            channels = json.loads(self.ctl('--json', 'show')).get('channels', [])
        except ValueError:
            return False
        # The state of a connected channel is an object with the key `up` and the version.
        return any('up' in channel['state'] for channel in channels)

    def attach(self, intf):
        """Adds an interface to the running switch. Returns the output of `weir ctl`."""
        intf = self.intf(intf)
        return self.ctl('add-port', self.port(intf))

    def detach(self, intf):
        """Removes an interface from the running switch. Returns the output of `weir ctl`."""
        return self.ctl('del-port', str(self.ports[self.intf(intf)]))


class WeirRemote(RemoteController):
    """A remote controller whose presence is checked with a TCP connection instead of telnet.

    Mininet checks with telnet. A controller sends its hello at once. If these bytes arrive before telnet ends, Mininet
    takes a byte 1 among them for the announcement of a process id, and waits forever for the rest.
    """

    def isListening(self, ip, port):
        """Returns True if a controller accepts connections at an address and port; prints a warning if none does."""
        if self.inNamespace:
            # The node has its own network namespace, in which this process cannot connect.
            return super().isListening(ip, port)
        try:
            socket.create_connection((ip, port), _ACCEPT_S).close()
        except OSError as error:
            warn('Unable to contact the remote controller at %s:%d: %s\n' % (ip, port, error))
            return False
        return True


def _end_with_parent():
    """Returns a preexec_fn with which the kernel ends the child process when this process ends for any reason.

    Returns None outside the main thread, because the kernel would end the child when the calling thread ends.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _output(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors='replace')


# Names that `mn --custom` reads: they define `--switch weir`, and replace Mininet's `--controller remote`.
switches = {'weir': WeirSwitch}
controllers = {'remote': WeirRemote}
