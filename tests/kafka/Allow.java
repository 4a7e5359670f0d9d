// Grants a user an operation on a topic: java -cp 'libs/*' Allow.java BROKER USER TOPIC OPERATION
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

class Allow {
    public static void main(String[] words) throws Exception {
        var topic = new ResourcePattern(ResourceType.TOPIC, words[2], PatternType.LITERAL);
        var entry = new AccessControlEntry(
            "User:" + words[1], "*", AclOperation.valueOf(words[3]), AclPermissionType.ALLOW);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) words[0]))) {
            admin.createAcls(List.of(new AclBinding(topic, entry))).all().get();
        }
    }
}
