import type { Replacement } from './program.ts'

/** Bugs of this project's past, each put back by other words in the sources of today. */
export const BUGS: readonly { name: string; replacements: readonly Replacement[] }[] = []
