import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Dialect portdigits: broker, publisher and subscriber. "--documented" writes digits as characters, otherwise binary
 * digits, a Java block and padding to 1500 bytes.
 *
 *   java PortDigits broker [--bind H:P] [--documented] [--no-forward] [--wrong-topic]
 *   java PortDigits publish H:P 01|02|03 TEXT [--documented]
 *   java PortDigits subscribe H:P 01|02|03 COUNT [--documented]
 */
public final class PortDigits {
    public static void main(String[] arguments) throws IOException {
        Net net = new Net(arguments);
        switch (net.words.get(0)) {
            case "broker" -> broker(net);
            case "publish" -> publish(net);
            default -> subscribe(net);
        }
    }

    static byte[] write(Net net, int port, int role, String topic, String text) throws IOException {
        byte[] digits = Net.bytes(String.format("%05d%d%s", port, role, topic));
        if (net.has("documented")) {
            return Net.join(digits, Net.bytes(text));
        }
        for (int i = 0; i < digits.length; i++) {
            digits[i] -= '0';
        }
        return Net.padded(Net.join(digits, Net.block(new byte[0], text)), 1500);
    }

    /** The eight digits as characters, or null if they are of the other form. */
    static String digits(Net net, byte[] data) {
        StringBuilder digits = new StringBuilder();
        for (int i = 0; i < 8; i++) {
            int digit = data.length < 8 ? -1 : data[i] - (net.has("documented") ? '0' : 0);
            if (digit < 0 || digit > 9) {
                return null;
            }
            digits.append(digit);
        }
        return digits.toString();
    }

    static String text(Net net, byte[] data) throws IOException {
        return net.has("documented") ? Net.unpadded(data, 8) : Net.unblock(data, 8).readUTF();
    }

    static void broker(Net net) throws IOException {
        Map<String, List<InetSocketAddress>> subscribers = new HashMap<>();
        for (;;) {
            DatagramPacket packet = net.receive(0);
            byte[] data = Net.data(packet);
            String digits = digits(net, data);
            if (digits == null) {
                continue;
            }
            String topic = digits.substring(6);
            if (digits.charAt(5) == '0') {
                InetSocketAddress listens = new InetSocketAddress(packet.getAddress(), Integer.parseInt(digits.substring(0, 5)));
                subscribers.computeIfAbsent(topic, key -> new ArrayList<>()).add(listens);
                Net.say("subscribed " + topic);
            } else if (!net.has("no-forward")) {
                String wanted = net.has("wrong-topic") ? (topic.equals("01") ? "02" : "01") : topic;
                try (DatagramSocket leaving = new DatagramSocket(new InetSocketAddress(net.socket.getLocalAddress(), 0))) {
                    for (InetSocketAddress to : subscribers.getOrDefault(wanted, List.of())) {
                        leaving.send(new DatagramPacket(data, data.length, to));
                    }
                }
            }
        }
    }

    static void publish(Net net) throws IOException {
        InetSocketAddress broker = Net.address(net.words.get(1));
        net.send(write(net, broker.getPort(), 1, net.words.get(2), net.words.get(3)), broker);
        Net.say("sent");
    }

    static void subscribe(Net net) throws IOException {
        byte[] request = write(net, net.socket.getLocalPort(), 0, net.words.get(2), "subscribing");
        try (DatagramSocket leaving = new DatagramSocket(new InetSocketAddress(net.socket.getLocalAddress(), 0))) {
            leaving.send(new DatagramPacket(request, request.length, Net.address(net.words.get(1))));
        }
        Net.say("subscribed");
        for (int left = Integer.parseInt(net.words.get(3)); left > 0; left--) {
            byte[] data = Net.data(net.receive(0));
            Net.say("received " + digits(net, data).substring(6) + ":" + text(net, data));
        }
    }
}
