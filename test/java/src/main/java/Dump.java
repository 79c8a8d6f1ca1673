// SPDX-License-Identifier: Apache-2.0
//
// Prints every row of an Iceberg table as one line of JSON, read by Iceberg's own Java library through the
// SQL catalog: Dump CATALOG.db CATALOG_NAME NAMESPACE TABLE. Timestamps are microseconds, doubles their
// bits, bytes hex, maps lists of pairs, so that another program can compare values exactly.
import java.nio.ByteBuffer;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.jdbc.JdbcCatalog;

public class Dump {
    static void text(StringBuilder out, CharSequence text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c < 0x20 || c == '"' || c == '\\' || c > 0x7e) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    static void value(StringBuilder out, Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof Double number) {
            text(out, Long.toHexString(Double.doubleToRawLongBits(number)));
        } else if (value instanceof CharSequence chars) {
            text(out, chars);
        } else if (value instanceof OffsetDateTime time) {
            out.append(Math.addExact(Math.multiplyExact(time.toEpochSecond(), 1_000_000L), time.getNano() / 1000));
        } else if (value instanceof ByteBuffer bytes) {
            StringBuilder hex = new StringBuilder();
            for (int i = bytes.position(); i < bytes.limit(); i++) {
                hex.append(String.format("%02x", bytes.get(i)));
            }
            text(out, hex);
        } else if (value instanceof List<?> list) {
            String separator = "[";
            for (Object item : list) {
                out.append(separator);
                value(out, item);
                separator = ",";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else if (value instanceof Map<?, ?> map) {
            String separator = "[";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator).append('[');
                value(out, entry.getKey());
                out.append(',');
                value(out, entry.getValue());
                out.append(']');
                separator = ",";
            }
            out.append(map.isEmpty() ? "[]" : "]");
        } else if (value instanceof Record record) {
            String separator = "[";
            for (int i = 0; i < record.size(); i++) {
                out.append(separator);
                value(out, record.get(i));
                separator = ",";
            }
            out.append(']');
        } else {
            throw new IllegalArgumentException(value.getClass().toString());
        }
    }

    public static void main(String[] words) throws Exception {
        JdbcCatalog catalog = new JdbcCatalog();
        catalog.setConf(new Configuration());
        catalog.initialize(words[1], Map.of("uri", "jdbc:sqlite:" + words[0], "warehouse", "file:///nowhere"));
        Table table = catalog.loadTable(TableIdentifier.of(words[2], words[3]));
        try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
            for (Record row : rows) {
                StringBuilder line = new StringBuilder();
                value(line, row);
                System.out.println(line);
            }
        }
    }
}
