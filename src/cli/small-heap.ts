import { setFlagsFromString } from 'node:v8'

/**
 * A run waits for hours and works for milliseconds, so its memory counts, and the speed of its hot loops does not: the
 * young generation does not grow (by itself it takes 130 MB when codex says much), the old one grows in small steps,
 * and the last optimizing compiler stays out. Measured: 230 MB become 82, at the same number of messages a second
 * (docs/benchmarks.md).
 */
const FLAGS = ['--semi-space-growth-factor=1', '--heap-growing-percent=20', '--no-turbofan']

/** Makes V8 prefer a small heap to a fast one, from now on. V8 reads these three while it runs. */
export function keepHeapSmall(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
}
