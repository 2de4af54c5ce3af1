import java.io.IOException;
import java.net.DatagramPacket;
import java.net.InetSocketAddress;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * Dialect rolebyte: broker, publisher (a sensor) and subscriber (the dashboard).
 *
 *   java RoleByte broker [--bind H:P] [--signed-length] [--same-type] [--no-forward] [--no-ack]
 *   java RoleByte publish H:P TOPIC TEXT
 *   java RoleByte subscribe H:P TOPIC COUNT [--silent]
 */
public final class RoleByte {
    static final int DASHBOARD_SUBSCRIBE = 1, BROKER = 2, SENSOR_PUBLISH = 3, ACTUATOR_SUBSCRIBE = 4, ACK = 7;
    static final byte[] ALL_OK = {ACK, 10};

    public static void main(String[] arguments) throws IOException {
        Net net = new Net(arguments);
        switch (net.words.get(0)) {
            case "broker" -> broker(net);
            case "publish" -> publish(net);
            default -> subscribe(net);
        }
    }

    static byte[] write(int type, String text) {
        byte[] bytes = Net.bytes(text);
        return Net.join(new byte[] {(byte) type, (byte) bytes.length}, bytes);
    }

    static void broker(Net net) throws IOException {
        Map<String, Set<InetSocketAddress>> subscribers = new LinkedHashMap<>();
        for (;;) {
            DatagramPacket packet = net.receive(0);
            byte[] data = Net.data(packet);
            InetSocketAddress from = Net.from(packet);
            int length = data.length < 2 ? -1 : net.has("signed-length") ? data[1] : data[1] & 0xFF;
            if (length < 0 || data[0] < 1 || data[0] > 6 || data.length < 2 + length) {
                continue;
            }
            String text = Net.text(data, 2, 2 + length);
            if (!net.has("no-ack")) {
                net.send(ALL_OK, from);
            }
            if (data[0] == DASHBOARD_SUBSCRIBE || data[0] == ACTUATOR_SUBSCRIBE) {
                subscribers.computeIfAbsent(text, key -> new LinkedHashSet<>()).add(from);
            } else {
                if (data[0] == 5) {
                    text = text.replaceFirst("Instructions", "");
                }
                int space = text.indexOf(' ');
                String topic = space < 0 ? text : text.substring(0, space);
                for (InetSocketAddress to : net.has("no-forward") ? Set.<InetSocketAddress>of() : subscribers.getOrDefault(topic, Set.of())) {
                    net.send(write(net.has("same-type") ? data[0] : BROKER, text), to);
                }
            }
        }
    }

    static void publish(Net net) throws IOException {
        byte[] request = write(SENSOR_PUBLISH, net.words.get(2) + " " + net.words.get(3));
        net.ask(request, Net.address(net.words.get(1)), answer -> answer[0] == ACK);
        Net.say("acknowledged");
    }

    static void subscribe(Net net) throws IOException {
        InetSocketAddress broker = Net.address(net.words.get(1));
        net.ask(write(DASHBOARD_SUBSCRIBE, net.words.get(2)), broker, answer -> answer[0] == ACK);
        Net.say("subscribed");
        for (int left = Integer.parseInt(net.words.get(3)); left > 0; ) {
            byte[] data = Net.data(net.receive(0));
            if (data[0] == BROKER) {
                if (!net.has("silent")) {
                    net.send(ALL_OK, broker);
                }
                Net.say("received " + Net.text(data, 2, 2 + (data[1] & 0xFF)).replaceFirst(" ", ":"));
                left--;
            }
        }
    }
}
