package strowger.bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;

/**
 * Saves values in registers, as its standard input requests. The arguments are the kind of the
 * journal, {@code leveldb} or {@code jdbc}, and its folder.
 *
 * <p>{@code save N} saves the next N values and prints {@code saved N NANOSECONDS}. {@code check}
 * terminates the system, starts it again, compares the last values of all registers and prints
 * {@code checked N}. The program exits at the end of its input, and fails at the first wrong
 * answer.
 */
public final class Main {
    private static final int REGISTERS = 10_000;
    /** Number of callers. Each saves to its own tenth of a percent of the registers. */
    private static final int CALLERS = 1000;

    private final String journal;
    private final Path folder;
    private Registers registers;
    /** The number of the next value. Registers take turns. */
    private long next;

    private Main(String journal, Path folder) throws Exception {
        this.journal = journal;
        this.folder = folder;
        registers = Registers.open(journal, folder, REGISTERS);
    }

    public static void main(String[] args) {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
        try {
            run(new Main(args[0], Path.of(args[1])));
        } catch (Throwable error) {
            error.printStackTrace();
            // Threads of the system would keep the program running.
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private static void run(Main main) throws Exception {
        var utf8 = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        var input = new BufferedReader(utf8);
        for (var line = input.readLine(); line != null; line = input.readLine()) {
            if (line.equals("check")) {
                System.out.println("checked " + main.check());
            } else if (line.startsWith("save ")) {
                long count = Long.parseLong(line.substring("save ".length()));
                System.out.println("saved " + count + " " + main.save(count));
            } else {
                throw new IllegalArgumentException("unknown request: " + line);
            }
        }
    }

    /** Saves the values of the next numbers, and returns the nanoseconds that it took. */
    private long save(long count) throws Exception {
        long first = next;
        long end = first + count;
        next = end;
        var callers = new ArrayList<CompletableFuture<Void>>(CALLERS);
        long start = System.nanoTime();
        for (long caller = first; caller < first + CALLERS; caller++) {
            var done = new CompletableFuture<Void>();
            saveNext(caller, end, done);
            callers.add(done);
        }
        for (var caller : callers) {
            caller.get();
        }
        return System.nanoTime() - start;
    }

    /** Saves one value after the other, each once the one before it was acknowledged. */
    private void saveNext(long number, long end, CompletableFuture<Void> done) {
        if (number >= end) {
            done.complete(null);
            return;
        }
        int register = (int) (number % REGISTERS);
        // Without an executor, this stage would start a thread for each answer on a machine with two
        // processors.
        registers.save(register, value(number)).whenCompleteAsync((count, error) -> {
            long expected = number / REGISTERS + 1;
            if (error != null) {
                done.completeExceptionally(error);
            } else if (count != expected) {
                var wrong = "register " + register + " has " + count + " saves, not " + expected;
                done.completeExceptionally(new IllegalStateException(wrong));
            } else {
                saveNext(number + CALLERS, end, done);
            }
        }, Runnable::run);
    }

    /** Terminates the system, starts it again, and compares the last value of each register. */
    private int check() throws Exception {
        registers.close();
        registers = Registers.open(journal, folder, REGISTERS);
        var answers = new ArrayList<CompletableFuture<String>>(REGISTERS);
        for (int register = 0; register < REGISTERS; register++) {
            answers.add(registers.get(register).toCompletableFuture());
        }
        for (int register = 0; register < REGISTERS; register++) {
            long last = next - 1 - Math.floorMod(next - 1 - register, (long) REGISTERS);
            var found = answers.get(register).get();
            if (!found.equals(value(last))) {
                throw new IllegalStateException("register " + register + " has value " + found);
            }
        }
        return REGISTERS;
    }

    /** Returns a value of 100 bytes that no other number has. */
    private static String value(long number) {
        return String.format("%0100d", number);
    }
}
