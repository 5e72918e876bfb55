import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/base/clock.ts'
import { codemachineHere, startInProcess } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { endSession, gate } from './verify/done-session.ts'

/** Fails where both files are there: each worktree passes alone, and the two together do not. */
const NOT_BOTH = 'if [ -e a.txt ] && [ -e b.txt ]; then echo a and b do not go together; exit 3; fi\n'
const CHECK = gate('sh check.sh')

export async function commit(place: TestPlace, top: string, files: Record<string, string>): Promise<void> {
  for (const [file, text] of Object.entries(files)) await writeFile(join(top, file), text)
  git(place, '-C', top, 'add', '-A')
  git(place, '-C', top, 'commit', '-qm', 'Work', '--allow-empty')
}

/** A checkout with `check.sh`. */
export async function makeProject(check = NOT_BOTH): Promise<TestPlace> {
  const place = await makePlace('')
  await commit(place, place.directory, { 'check.sh': check })
  return place
}

/** A worktree with a session that is done, proved by these gates; null: without a session. */
export async function makeWork(
  place: TestPlace,
  name: string,
  files: Record<string, string>,
  gates: readonly ReturnType<typeof gate>[] | null = [CHECK],
): Promise<string> {
  const top = join(place.root, 'work.worktrees', name)
  git(place, 'worktree', 'add', '-q', '-b', `codemachine/${name}`, top)
  await commit(place, top, files)
  if (gates !== null) await endSession(place, gates, { directory: top })
  return top
}

export const land = (place: TestPlace, ...args: string[]) => codemachineHere(place, ['land', ...args])
export const head = (place: TestPlace, ref = 'main') => git(place, 'rev-parse', ref)
export const scratch = (place: TestPlace) =>
  readdirSync(tmpdir()).filter(name => name.startsWith('codemachine-verify-work-') && isOf(place, name))

/** The key of the records ends the name of a scratch folder, before its random part. */
function isOf(place: TestPlace, name: string): boolean {
  return readdirSync(join(place.root, 'home/.codemachine/state')).some(key => name.includes(key))
}

/** A gate that waits for a file: what happens meanwhile happens while a merge is proved. */
export const held = (place: TestPlace) => gate(`until [ -e ${join(place.root, 'go')} ]; do sleep 0.05; done`, 'held')
export const letGo = (place: TestPlace) => writeFile(join(place.root, 'go'), '')

/** Starts `land` in this process; resolves once a gate runs on a merge. */
export async function startLanding(place: TestPlace, ...args: string[]) {
  const run = startInProcess(place, ['land', ...args], { clock: systemClock })
  while (!run.stderr().includes('runs on the merge: held')) await run.alive()
  return run
}
