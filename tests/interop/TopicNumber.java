import java.io.IOException;
import java.net.DatagramPacket;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Dialect topicnumber: broker, publisher and subscriber. Every datagram has 1400 bytes.
 *
 *   java TopicNumber broker [--bind H:P] [--shared-numbers] [--no-forward] [--no-message]
 *   java TopicNumber publish H:P NAME TEXT [--number-zero]
 *   java TopicNumber subscribe H:P NAME COUNT [--silent]
 */
public final class TopicNumber {
    static final int ACK = 0, CREATION = 4, PUBLICATION = 5, SUBSCRIPTION = 6, UNSUBSCRIPTION = 7, MESSAGE = 8;

    public static void main(String[] arguments) throws IOException {
        Net net = new Net(arguments);
        switch (net.words.get(0)) {
            case "broker" -> broker(net);
            case "publish" -> publish(net);
            default -> subscribe(net);
        }
    }

    static byte[] write(int type, int number, String text) {
        return ByteBuffer.allocate(1400).put((byte) type).put((byte) 0).putInt(number).put(Net.bytes(text)).array();
    }

    static byte[] ack(byte[] data) {
        byte[] echo = data.clone();
        echo[0] = ACK;
        return echo;
    }

    static void broker(Net net) throws IOException {
        Map<String, String> names = new HashMap<>();
        Map<String, List<InetSocketAddress>> subscribers = new HashMap<>();
        for (;;) {
            DatagramPacket packet = net.receive(0);
            byte[] data = Net.data(packet);
            InetSocketAddress from = Net.from(packet);
            if (data.length != 1400 || data[0] < CREATION || data[0] > UNSUBSCRIPTION) {
                continue;
            }
            int number = ByteBuffer.wrap(data).getInt(2);
            String text = Net.unpadded(data, 6);
            String key = (net.has("shared-numbers") ? "" : from) + "/" + number;
            net.send(ack(data), from);
            String sentence;
            switch (data[0]) {
                case CREATION -> {
                    names.put(key, text);
                    subscribers.computeIfAbsent(text, name -> new ArrayList<>());
                    sentence = "Topic created.";
                }
                case PUBLICATION -> {
                    String name = names.get(key);
                    for (InetSocketAddress to : net.has("no-forward") ? List.<InetSocketAddress>of() : subscribers.getOrDefault(name, List.of())) {
                        net.send(data, to);
                    }
                    sentence = name == null ? "This topic does not exist." : "Message published.";
                }
                case SUBSCRIPTION -> {
                    List<InetSocketAddress> known = subscribers.get(text);
                    if (known != null) {
                        known.add(from);
                    }
                    sentence = known == null ? "This topic does not exist." : "Subscribed.";
                }
                default -> {
                    List<InetSocketAddress> known = subscribers.get(text);
                    sentence = known != null && known.removeIf(from::equals) ? "Unsubscribed." : "This topic does not exist.";
                }
            }
            if (!net.has("no-message")) {
                net.send(write(MESSAGE, 0, sentence), from);
            }
        }
    }

    /** A request, its ACK, and the sentence that follows, which is acknowledged. */
    static String request(Net net, byte[] request, InetSocketAddress broker, List<byte[]> early) throws IOException {
        byte[] wanted = ack(request);
        String[] sentence = new String[1];
        net.ask(request, broker, answer -> {
            note(net, answer, broker, early, sentence);
            return java.util.Arrays.equals(answer, wanted);
        });
        while (sentence[0] == null) {
            DatagramPacket packet = net.receive(5 * Net.RESEND_MS);
            if (packet == null) {
                return "";
            }
            note(net, Net.data(packet), broker, early, sentence);
        }
        return sentence[0];
    }

    static void note(Net net, byte[] data, InetSocketAddress broker, List<byte[]> early, String[] sentence) {
        try {
            if (data[0] == MESSAGE) {
                sentence[0] = Net.unpadded(data, 6);
            } else if (data[0] == PUBLICATION) {
                early.add(data);
            }
            if (data[0] == MESSAGE || (data[0] == PUBLICATION && !net.has("silent"))) {
                net.send(ack(data), broker);
            }
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    static void publish(Net net) throws IOException {
        InetSocketAddress broker = Net.address(net.words.get(1));
        int number = net.has("number-zero") ? 0 : net.socket.getLocalPort();
        Net.say(request(net, write(CREATION, number, net.words.get(2)), broker, new ArrayList<>()));
        Net.say(request(net, write(PUBLICATION, number, net.words.get(3)), broker, new ArrayList<>()));
        Net.say("acknowledged");
    }

    static void subscribe(Net net) throws IOException {
        InetSocketAddress broker = Net.address(net.words.get(1));
        List<byte[]> got = new ArrayList<>();
        byte[] request = write(SUBSCRIPTION, 0, net.words.get(2));
        while (request(net, request, broker, got).equals("This topic does not exist.")) {
            net.receive(Net.RESEND_MS / 4);  // the habit of the original: ask again after exactly this sentence
        }
        Net.say("subscribed");
        int wanted = Integer.parseInt(net.words.get(3));
        while (got.size() < wanted) {
            note(net, Net.data(net.receive(0)), broker, got, new String[1]);
        }
        for (byte[] data : got) {
            Net.say("received " + net.words.get(2) + ":" + Net.unpadded(data, 6));
        }
    }
}
