import java.io.IOException;
import java.io.ObjectInputStream;
import java.net.DatagramPacket;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Dialect topicbyte: broker, publisher and subscriber. "--documented" writes plain bytes, otherwise Java blocks.
 *
 *   java TopicByte broker [--bind H:P] [--documented] [--one-topic] [--ack-acks] [--no-forward]
 *   java TopicByte publish H:P 10|20 TEXT [--documented]
 *   java TopicByte subscribe H:P 10|20 COUNT [--documented]
 */
public final class TopicByte {
    public static void main(String[] arguments) throws IOException {
        Net net = new Net(arguments);
        switch (net.words.get(0)) {
            case "broker" -> broker(net);
            case "publish" -> publish(net);
            default -> subscribe(net);
        }
    }

    static byte[] write(Net net, int type, int topic, String text) throws IOException {
        byte[] head = {(byte) type, (byte) topic};
        return net.has("documented") ? Net.join(head, Net.bytes(text == null ? "" : text)) : Net.block(head, text);
    }

    /** Type, topic and text, or null if it is not of this form. */
    static Object[] read(Net net, byte[] data) {
        try {
            if (net.has("documented")) {
                return data.length < 2 || data[0] < 1 || data[0] > 3 ? null : new Object[] {(int) data[0], (int) data[1], Net.unpadded(data, 2)};
            }
            ObjectInputStream in = Net.unblock(data, 0);
            int type = in.readByte();
            int topic = in.readByte();
            return new Object[] {type, topic, in.available() > 1 ? in.readUTF() : ""};
        } catch (IOException notOfThisForm) {
            return null;
        }
    }

    static void broker(Net net) throws IOException {
        Map<Integer, List<InetSocketAddress>> subscribers = new HashMap<>();
        for (;;) {
            DatagramPacket packet = net.receive(0);
            byte[] data = Net.data(packet);
            Object[] message = read(net, data);
            boolean isAck = message != null && message[0].equals(1);
            if (!isAck || net.has("ack-acks")) {
                net.send(write(net, 1, 0, "OK - Received this"), Net.from(packet));
            }
            if (message == null) {
                continue;
            }
            int topic = net.has("one-topic") ? 10 : (int) message[1];
            if (message[0].equals(2)) {
                subscribers.computeIfAbsent(topic, key -> new ArrayList<>()).add(Net.from(packet));
            } else if (message[0].equals(3) && !net.has("no-forward")) {
                for (InetSocketAddress to : subscribers.getOrDefault((int) message[1], List.of())) {
                    net.send(data, to);
                }
            }
        }
    }

    static void publish(Net net) throws IOException {
        byte[] request = write(net, 3, Integer.parseInt(net.words.get(2)), net.words.get(3));
        net.ask(request, Net.address(net.words.get(1)), answer -> isAck(net, answer));
        Net.say("acknowledged");
        if (net.has("ack-again")) {
            net.send(write(net, 1, 0, "OK - Received this"), Net.address(net.words.get(1)));
        }
    }

    static boolean isAck(Net net, byte[] answer) {
        Object[] message = read(net, answer);
        return message != null && message[0].equals(1);
    }

    static void subscribe(Net net) throws IOException {
        byte[] request = write(net, 2, Integer.parseInt(net.words.get(2)), null);
        net.ask(request, Net.address(net.words.get(1)), answer -> isAck(net, answer));
        Net.say("subscribed");
        for (int left = Integer.parseInt(net.words.get(3)); left > 0; ) {
            Object[] message = read(net, Net.data(net.receive(0)));
            if (message != null && message[0].equals(3)) {
                Net.say("received " + message[1] + ":" + message[2]);
                left--;
            }
        }
    }
}
