import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What the programs of all dialects need: words of the command line, a socket, Java blocks. */
final class Net {
    static final int RESEND_MS = 1000;
    static final int TRIES = 8;

    final List<String> words = new ArrayList<>();
    final Set<String> switches = new HashSet<>();
    final DatagramSocket socket;

    /** Switches begin with "--"; "--bind HOST:PORT" takes a word. */
    Net(String[] arguments) throws IOException {
        InetSocketAddress bind = new InetSocketAddress("127.0.0.1", 0);
        for (int i = 0; i < arguments.length; i++) {
            if (arguments[i].equals("--bind")) {
                bind = address(arguments[++i]);
            } else if (arguments[i].startsWith("--")) {
                switches.add(arguments[i].substring(2));
            } else {
                words.add(arguments[i]);
            }
        }
        socket = new DatagramSocket(bind);
        System.out.println("listening on " + socket.getLocalAddress().getHostAddress() + " port " + socket.getLocalPort());
    }

    boolean has(String name) {
        return switches.contains(name);
    }

    static InetSocketAddress address(String text) {
        int colon = text.lastIndexOf(':');
        return new InetSocketAddress(text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
    }

    void send(byte[] data, InetSocketAddress to) throws IOException {
        socket.send(new DatagramPacket(data, data.length, to));
    }

    /** The next datagram, or null after so many milliseconds (0: wait for ever). */
    DatagramPacket receive(int milliseconds) throws IOException {
        DatagramPacket packet = new DatagramPacket(new byte[65536], 65536);
        socket.setSoTimeout(milliseconds);
        try {
            socket.receive(packet);
        } catch (SocketTimeoutException nothing) {
            return null;
        }
        return packet;
    }

    static byte[] data(DatagramPacket packet) {
        return Arrays.copyOf(packet.getData(), packet.getLength());
    }

    static InetSocketAddress from(DatagramPacket packet) {
        return (InetSocketAddress) packet.getSocketAddress();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data, int start, int end) {
        return new String(data, start, end - start, StandardCharsets.UTF_8);
    }

    /** Text up to the padding. */
    static String unpadded(byte[] data, int start) {
        int end = data.length;
        while (end > start && data[end - 1] == 0) {
            end--;
        }
        return text(data, start, end);
    }

    static byte[] join(byte[]... parts) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            out.writeBytes(part);
        }
        return out.toByteArray();
    }

    static byte[] padded(byte[] data, int size) {
        return Arrays.copyOf(data, Math.max(size, data.length));
    }

    /** AC ED 00 05 77 LL: what an ObjectOutputStream makes of primitive data. */
    static byte[] block(byte[] head, String utf) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        ObjectOutputStream out = new ObjectOutputStream(bytes);
        out.write(head);
        if (utf != null) {
            out.writeUTF(utf);
        }
        out.flush();
        return bytes.toByteArray();
    }

    static ObjectInputStream unblock(byte[] data, int start) throws IOException {
        return new ObjectInputStream(new ByteArrayInputStream(data, start, data.length - start));
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Send a request until an answer comes that the caller takes. */
    DatagramPacket ask(byte[] request, InetSocketAddress to, java.util.function.Predicate<byte[]> isAnswer) throws IOException {
        for (int tries = 0; tries < TRIES; tries++) {
            send(request, to);
            long end = System.nanoTime() + RESEND_MS * 1_000_000L;
            for (;;) {
                int left = (int) ((end - System.nanoTime()) / 1_000_000L);
                DatagramPacket answer = left > 0 ? receive(left) : null;
                if (answer == null) {
                    break;
                }
                if (isAnswer.test(data(answer))) {
                    return answer;
                }
            }
        }
        throw new IOException("no answer");
    }
}
