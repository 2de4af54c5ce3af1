import java.io.IOException;
import java.net.DatagramPacket;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Dialect colon: broker, publisher and subscriber.
 *
 *   java Colon broker [--bind H:P] [--regex-filters] [--silent-unsubscribe] [--padded-retained] [--no-forward] [--ack-first]
 *   java Colon publish H:P TOPIC TEXT [--retain]
 *   java Colon subscribe H:P FILTER COUNT [--unsubscribe]
 */
public final class Colon {
    static final Map<String, Set<InetSocketAddress>> subscribers = new LinkedHashMap<>();
    static final Map<String, byte[]> retained = new LinkedHashMap<>();

    public static void main(String[] arguments) throws IOException {
        Net net = new Net(arguments);
        switch (net.words.get(0)) {
            case "broker" -> broker(net);
            case "publish" -> publish(net);
            default -> subscribe(net);
        }
    }

    static boolean matches(Net net, String filter, String topic) {
        if (net.has("regex-filters")) {
            return topic.matches(filter.replace("*", ".*"));
        }
        StringBuilder quoted = new StringBuilder();
        for (String part : filter.split("\\*", -1)) {
            quoted.append(quoted.length() == 0 ? "" : ".*").append("\\Q").append(part).append("\\E");
        }
        return topic.matches("(?s)" + quoted);
    }

    static void broker(Net net) throws IOException {
        for (;;) {
            DatagramPacket packet = net.receive(0);
            byte[] data = Net.data(packet);
            InetSocketAddress from = Net.from(packet);
            if (data.length < 2) {
                continue;
            }
            String rest = Net.unpadded(data, 2);
            if (data[0] == 1 && rest.indexOf(':') > 0) {
                String topic = rest.substring(0, rest.indexOf(':'));
                if (data[1] == 1) {
                    retained.put(topic, Net.join(new byte[] {1, 1}, Net.bytes(rest)));
                }
                if (net.has("ack-first")) {
                    net.send(new byte[] {2}, from);
                }
                for (Map.Entry<String, Set<InetSocketAddress>> entry : subscribers.entrySet()) {
                    if (!net.has("no-forward") && matches(net, entry.getKey(), topic)) {
                        for (InetSocketAddress to : entry.getValue()) {
                            net.send(data, to);
                        }
                    }
                }
                if (!net.has("ack-first")) {
                    net.send(new byte[] {2}, from);
                }
            } else if (data[0] == 3) {
                subscribers.computeIfAbsent(rest, key -> new LinkedHashSet<>()).add(from);
                for (Map.Entry<String, byte[]> entry : retained.entrySet()) {
                    if (matches(net, rest, entry.getKey())) {
                        net.send(net.has("padded-retained") ? Net.padded(entry.getValue(), 65000) : entry.getValue(), from);
                    }
                }
                net.send(new byte[] {4}, from);
            } else if (data[0] == 5) {
                Set<InetSocketAddress> known = subscribers.get(rest);
                boolean removed = known != null && known.remove(from);
                if (removed || !net.has("silent-unsubscribe")) {
                    net.send(new byte[] {6}, from);
                }
            }
        }
    }

    static void publish(Net net) throws IOException {
        String said = net.words.get(2) + ":" + net.words.get(3);
        byte[] request = Net.join(new byte[] {1, (byte) (net.has("retain") ? 1 : 0)}, Net.bytes(said));
        net.ask(request, Net.address(net.words.get(1)), answer -> answer.length >= 1 && answer[0] == 2);
        Net.say("acknowledged");
    }

    static void subscribe(Net net) throws IOException {
        InetSocketAddress broker = Net.address(net.words.get(1));
        byte[] filter = Net.bytes(net.words.get(2));
        int wanted = Integer.parseInt(net.words.get(3));
        List<byte[]> early = new ArrayList<>();
        net.ask(Net.join(new byte[] {3, 0}, filter), broker, answer -> {
            if (answer[0] == 1) {
                early.add(answer);
            }
            return answer[0] == 4;
        });
        Net.say("subscribed");
        for (int number = 0; number < wanted; number++) {
            byte[] data = number < early.size() ? early.get(number) : Net.data(net.receive(0));
            Net.say("received " + Net.unpadded(data, 2));
        }
        if (net.has("unsubscribe")) {
            net.ask(Net.join(new byte[] {5, 0}, filter), broker, answer -> answer[0] == 6);
            Net.say("unsubscribed");
        }
    }
}
