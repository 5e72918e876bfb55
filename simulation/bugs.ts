import type { KindOfNight } from './night.ts'
import type { Replacement } from './program.ts'

/**
 * Bugs of this project's past, each put back by other words in the sources of today. The changelog, or
 * docs/inside/promises.md, has each. `kind`: of the nights in which it is looked for; left out: of any kind.
 */
export const BUGS: readonly { name: string; kind?: KindOfNight; replacements: readonly Replacement[] }[] = [
  {
    name: 'a prompt that was claimed as codemachine was killed is lost',
    kind: 'queue',
    replacements: [
      { file: 'src/project/run-queue.ts', from: '  for (const id of claimed) await queue.release(id)\n', to: '' },
    ],
  },
  {
    name: 'a prompt that has become a session becomes another one after a crash',
    kind: 'queue',
    replacements: [
      {
        file: 'src/project/run-queue.ts',
        from: 'for (const { queued } of sessions) if (queued !== null && waiting.has(queued)) await queue.removeIfWaiting(queued)',
        to: '',
      },
    ],
  },
  {
    name: 'the stale lock of a dead run is taken twice',
    kind: 'two-runs',
    replacements: [
      {
        file: 'src/session/records/run-lock.ts',
        from: '  const name = createHash',
        to: '  if (Math.random() >= 0) return await rm(path, { force: true })\n  const name = createHash',
      },
    ],
  },
  {
    name: 'a savepoint lacks objects that were borrowed from the repository',
    replacements: [
      {
        file: 'src/workspace/savepoints/savepoint-writer.ts',
        from: '    await this.own(tree, base, signal)\n    this.#fingerprints',
        to: '    this.#fingerprints',
      },
    ],
  },
  {
    name: 'work that a round hides behind an ignore rule of its own is not seen',
    replacements: [
      {
        file: 'src/workspace/fingerprint/session-rules.ts',
        from: '  const isKept = await pathExists(path)',
        to: '  const isKept = path === null',
      },
    ],
  },
  {
    name: 'a claim is judged before what its round has left running has ended',
    replacements: [{ file: 'src/session/proof/claim.ts', from: '  await engines.settle()\n  const', to: '  const' }],
  },
  {
    name: 'a turn whose end never arrives is silent for ever',
    kind: 'codex',
    replacements: [
      {
        file: 'src/engines/codex/round.ts',
        from: "    if (status === 'active') this.#turn?.isActive()",
        to: "    if (status !== '') this.#turn?.isActive()",
      },
    ],
  },
  {
    name: 'a write to the journal that the disk cut short is not finished',
    kind: 'journal',
    replacements: [
      {
        file: 'src/session/records/journal.ts',
        from: 'while (written < bytes.length) written',
        to: 'if (written < bytes.length) written',
      },
    ],
  },
  {
    name: 'an event that follows a torn line is written behind it',
    kind: 'journal',
    replacements: [
      {
        file: 'src/session/records/journal.ts',
        from: 'let torn = size > 0 && lastByte(fd, size) !== NEWLINE',
        to: 'let torn = size < 0 && lastByte(fd, size) !== NEWLINE',
      },
    ],
  },
  {
    name: 'the end of a round is not brought to the disk',
    kind: 'power',
    replacements: [
      {
        file: 'src/session/session-log.ts',
        from: '    return this.#journal.sync()',
        to: '    return Promise.resolve()',
      },
    ],
  },
  {
    name: 'a session is done whose certificate cannot be written',
    kind: 'certificate',
    replacements: [
      {
        file: 'src/project/certificate/certify.ts',
        from: 'return { refused: uncertified(path, error), problem: null }',
        to: 'return { refused: null, problem: uncertified(path, error).kind }',
      },
    ],
  },
  {
    name: 'a power cut leaves an empty .gitignore in .codemachine',
    kind: 'power',
    replacements: [
      {
        file: 'src/workspace/memory/memory-folder.ts',
        from: 'if (!(await pathExists(join(root, file)))) await writeFileInside(root, file, text)',
        to: "await (await import('node:fs/promises')).writeFile(join(root, file), text, { flag: 'wx', mode: 0o600 }).catch(() => {})",
      },
    ],
  },
  {
    name: 'what the disk refused once to take out of .git stays there',
    kind: 'guard',
    replacements: [
      {
        file: 'src/workspace/guard/repository-guard.ts',
        from: 'scanGuardedFiles(commonDir), restoration.failed)',
        to: 'scanGuardedFiles(commonDir), new Set())',
      },
    ],
  },
]
