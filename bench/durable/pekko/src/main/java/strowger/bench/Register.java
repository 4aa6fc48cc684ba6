package strowger.bench;

import org.apache.pekko.actor.typed.ActorRef;
import org.apache.pekko.persistence.typed.PersistenceId;
import org.apache.pekko.persistence.typed.javadsl.CommandHandler;
import org.apache.pekko.persistence.typed.javadsl.EventHandler;
import org.apache.pekko.persistence.typed.javadsl.EventSourcedBehavior;

/** A persistent actor with a value. An event is a new value, and the state also counts events. */
final class Register extends EventSourcedBehavior<Register.Command, String, Register.State> {
    /** A message to a register. */
    sealed interface Command permits Save, Get {}

    /** Saves a value, and is answered with the number of saves once the value is on the disk. */
    record Save(String value, ActorRef<Long> replyTo) implements Command {}

    /** Requests the last value. */
    record Get(ActorRef<String> replyTo) implements Command {}

    record State(long count, String value) {}

    Register(String key) {
        super(PersistenceId.ofUniqueId(key));
    }

    @Override
    public State emptyState() {
        return new State(0, "");
    }

    @Override
    public CommandHandler<Command, String, State> commandHandler() {
        return newCommandHandlerBuilder()
            .forAnyState()
            .onCommand(Save.class, (state, save) ->
                Effect().persist(save.value()).thenReply(save.replyTo(), State::count))
            .onCommand(Get.class, (state, get) ->
                Effect().reply(get.replyTo(), state.value()))
            .build();
    }

    @Override
    public EventHandler<State, String> eventHandler() {
        return newEventHandlerBuilder()
            .forAnyState()
            .onEvent(String.class, (state, value) -> new State(state.count() + 1, value))
            .build();
    }
}
