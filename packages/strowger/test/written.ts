/** Returns what is written to standard error, as lines, while `work` runs. */
export async function written(work: () => Promise<void>): Promise<readonly string[]> {
  const { error } = console;
  const lines: string[] = [];
  console.error = (...values: unknown[]) => void lines.push(values.join(" "));
  try {
    await work();
  } finally {
    console.error = error;
  }
  return lines;
}
