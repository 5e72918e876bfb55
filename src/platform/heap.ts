import { setFlagsFromString } from 'node:v8'

/**
 * V8 flags for a small heap. A run waits for hours and works for milliseconds, so memory counts and hot loops do not. So the
 * young generation does not grow (it takes 130 MB when codex says much). The old generation grows in small steps, and the
 * last optimizing compiler is off. Maglev compiles often-called functions, so late that a start and a short round cost
 * nothing: that saves 10 MB. V8 warns on stderr about unknown flags, so the oldest supported Node knows each of them.
 * Figures: docs/inside/benchmarks.md.
 */
const FLAGS = [
  '--semi-space-growth-factor=1',
  '--heap-growing-percent=20',
  '--no-turbofan',
  '--no-maglev-inlining',
  '--invocation-count-for-maglev=4000',
]

/** Makes V8 prefer a small heap to speed. V8 reads these flags at run time. */
export function keepHeapSmall(): void {
  for (const flag of FLAGS) setFlagsFromString(flag)
}

/**
 * Does the same for a screen process, which needs less speed than one that only reads codex. Measured after 100,000 events:
 * 106 MB instead of 119, and 1.08 instead of 1.13 times the size after 1,000. Cost: a fifth fewer messages a second.
 */
export function keepScreenSmall(): void {
  keepHeapSmall()
  setFlagsFromString('--optimize-for-size')
}
