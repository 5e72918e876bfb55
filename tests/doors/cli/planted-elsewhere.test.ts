import { existsSync } from 'node:fs'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { git, makePlace, type TestPlace } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, round } from '../../support/rounds.ts'
import { openScene } from '../../support/scene.ts'
import { test } from '../../support/side-by-side.ts'
import { endSession, gate } from './verify/done-session.ts'

/** Puts a program into a folder, as an agent could, which leaves a trace when it is run. */
async function plant(place: TestPlace, folder: string, name: string) {
  const trace = join(place.root, `${name}-ran-outside`)
  const bin = join(folder, 'node_modules', '.bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, name), `#!/bin/sh\necho "$0" >> '${trace}'\nexit 1\n`)
  await chmod(join(bin, name), 0o755)
  return { path: join(bin, name), PATH: `${bin}${delimiter}${place.env.PATH}`, hasRun: () => existsSync(trace) }
}

/** Programs that codemachine runs by their names, and that those run. */
const NAMES = [
  'codex',
  'git',
  'git-lfs',
  'node',
  'systemd-inhibit',
  'xdg-open',
  'vi',
  'mail',
  'ssh',
  'chromium',
] as const

promise(
  'B121',
  "No program is taken from a folder in which a session has ever begun, or from another work tree of its repository, and none finds one there; commands of agents have the person's PATH",
)
test('a program that a session has left in its directory is not run by a session of another directory', async () => {
  await using scene = await openScene([round(claimDone), round(claimDone)])
  const { place } = scene
  expect(await scene.run('build X')).toMatchObject({ exitCode: 0 })
  const planted = await Promise.all(NAMES.map(name => plant(place, place.directory, name)))
  const own = await plant(place, place.directory, 'planted')
  await writeFile(own.path, '#!/bin/sh\ntouch planted-ran-inside\n', { mode: 0o755 })
  const other = join(place.root, 'other')
  await mkdir(other)
  git(place, 'init', '-q', other)
  const config = join(place.home, '.config', 'codemachine')
  await mkdir(config, { recursive: true })
  await writeFile(join(config, 'config.toml'), '[notify]\ncommand = ["mail"]\n')
  const theirs = `planted && test -f planted-ran-inside && test "$(command -v git)" = '${dirname(own.path)}/git'`
  const run = scene.command(['--json', '--verify', theirs, 'build Y'], { cwd: other, env: { PATH: own.PATH } })
  // Commands of agents, and gates, find what the person's PATH leads to.
  const ended = await run.ended
  expect(ended).toMatchObject({ exitCode: 0 })
  expect(planted.filter(each => each.hasRun()).map(({ path }) => path)).toEqual([])
})

promise('B121')
test('a codex that was planted in a checkout is passed over where a worktree of it is worked in, and named', async () => {
  await using place = await makePlace('')
  await endSession(place, [gate('true')])
  const planted = await plant(place, place.directory, 'codex')
  const env = { PATH: planted.PATH }
  const said = await codemachineHere(place, ['--worktree', 'x', '--json', '--max-time', '1s', 'build X'], {
    env,
  })
  expect(said.stdout + said.stderr).toContain(`does not use a codex that an agent can write: ${planted.path}`)
  expect(planted.hasRun()).toBe(false)
})

promise('B121')
test('a git that was landed into the checkout is not run there, nor in a worktree, though that is removed', async () => {
  await using place = await makePlace('')
  const top = join(place.root, 'work.worktrees', 'x')
  git(place, 'worktree', 'add', '-q', '-b', 'codemachine/x', top)
  await endSession(place, [gate('true')], { directory: top })
  await writeFile(join(top, '.gitattributes'), '* filter=lfs\n')
  git(place, '-C', top, 'add', '.gitattributes')
  git(place, '-C', top, 'commit', '-qm', 'Work')
  const planted = [await plant(place, place.directory, 'git'), await plant(place, place.directory, 'git-lfs')]
  const PATH = planted[0]?.PATH ?? ''
  for (const name of ['clean', 'smudge']) git(place, 'config', `filter.lfs.${name}`, `git-lfs ${name}`)
  const typed = (...args: string[]) => codemachineHere(place, args, { env: { PATH } })
  expect(await typed('verify', '-C', top)).not.toMatchObject({ exitCode: 2 })
  expect(await typed('land', 'x')).toMatchObject({ exitCode: 0 })
  git(place, 'worktree', 'remove', '--force', top)
  await rm(join(place.root, 'work.worktrees'), { recursive: true, force: true })
  await typed('doctor', '--json')
  await typed('land')
  expect(planted.map(each => each.hasRun())).toEqual([false, false])
})
