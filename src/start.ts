import { version } from './base/package.ts'

// Only what every Node since 12 reads may stand here: the sentence below is for those that are too old.
const OLDEST = [22, 12]

/** Starts one of the programs of the package, in a process of a Node that may be too old for it. */
export async function start(process: NodeJS.Process, program: 'codemachine' | 'codex-flow'): Promise<void> {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const isTooOld =
    Number(major) < Number(OLDEST[0]) || (Number(major) === OLDEST[0] && Number(minor) < Number(OLDEST[1]))
  if (isTooOld) {
    process.stderr.write(
      `${program} needs Node ${OLDEST.join('.')} or newer, and this is Node ${process.versions.node}; install a newer one from https://nodejs.org.\n`,
    )
    process.exitCode = 2
  } else if (!isVersionWritten(process)) {
    process.getBuiltinModule('node:module').enableCompileCache()
    // A separate file, so that nothing of it is read before the check above.
    const entry = './entry.js'
    const { main } = await import(entry)
    await main(process, program)
  }
}

/**
 * Whether the version alone was asked for, and is written: without `process.stdout`, which brings all of Node's streams with
 * it. What a terminal, pipe or file does not take so is written, or told of, as any output is.
 */
function isVersionWritten(process: NodeJS.Process): boolean {
  const [, , typed, ...more] = process.argv
  if (more.length > 0 || !['--version', '-V', 'version'].includes(typed ?? '')) return false
  try {
    process.getBuiltinModule('node:fs').writeSync(1, `${version}\n`)
    return true
  } catch {
    return false
  }
}
