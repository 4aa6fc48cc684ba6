package strowger.bench;

import com.typesafe.config.ConfigFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.actor.typed.ActorSystem;
import org.apache.pekko.actor.typed.Behavior;
import org.apache.pekko.actor.typed.javadsl.AskPattern;
import org.apache.pekko.actor.typed.javadsl.Behaviors;

/** A system with one actor for each register. */
final class Registers implements AutoCloseable {
    /** Time limit of an answer, and of the start and the end of the system. */
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final ActorSystem<Void> system;
    private final List<ActorRef<Register.Command>> actors;

    private Registers(ActorSystem<Void> system, List<ActorRef<Register.Command>> actors) {
        this.system = system;
        this.actors = actors;
    }

    /**
     * Opens the journal in a folder, or creates it, and starts the actors. A journal is the name of
     * its configuration: {@code leveldb} or {@code jdbc}.
     */
    static Registers open(String journal, Path folder, int count) throws Exception {
        Files.createDirectories(folder);
        var argument = ConfigFactory.parseMap(Map.of("bench.folder", folder.toString()));
        var named = ConfigFactory.parseResources(journal + ".conf");
        var config = ConfigFactory.load(argument.withFallback(named));
        if (journal.equals("jdbc")) {
            createTables(config.getString("jdbc-journal.slick.db.url"));
        }
        var started = new CompletableFuture<List<ActorRef<Register.Command>>>();
        Behavior<Void> guardian = Behaviors.setup(context -> {
            var actors = new ArrayList<ActorRef<Register.Command>>(count);
            for (int register = 0; register < count; register++) {
                var key = "register-" + register;
                actors.add(context.spawn(new Register(key), key));
            }
            started.complete(actors);
            return Behaviors.empty();
        });
        var system = ActorSystem.create(guardian, "bench", config);
        return new Registers(system, started.get(LIMIT.toSeconds(), TimeUnit.SECONDS));
    }

    private static void createTables(String url) throws Exception {
        try (var schema = Registers.class.getResourceAsStream("/jdbc.sql");
                var connection = DriverManager.getConnection(url);
                var statement = connection.createStatement()) {
            var text = new String(schema.readAllBytes(), StandardCharsets.UTF_8);
            for (var table : text.split(";")) {
                if (!table.isBlank()) {
                    statement.execute(table);
                }
            }
        }
    }

    /** Saves a value, and completes with the number of saves of the register. */
    CompletionStage<Long> save(int register, String value) {
        return AskPattern.ask(
            actors.get(register),
            (ActorRef<Long> replyTo) -> new Register.Save(value, replyTo),
            LIMIT,
            system.scheduler());
    }

    /** Completes with the last value of a register. */
    CompletionStage<String> get(int register) {
        return AskPattern.<Register.Command, String>ask(
            actors.get(register), Register.Get::new, LIMIT, system.scheduler());
    }

    /** Terminates the system, which closes the journal. */
    @Override
    public void close() throws Exception {
        system.terminate();
        var terminated = system.getWhenTerminated().toCompletableFuture();
        terminated.get(LIMIT.toSeconds(), TimeUnit.SECONDS);
    }
}
