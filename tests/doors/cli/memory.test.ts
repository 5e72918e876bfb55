import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Ended } from '../../support/codemachine.ts'
import { git } from '../../support/place.ts'
import { promise } from '../../support/promise.ts'
import { claimDone, folder, readMain, round, writeMemory } from '../../support/rounds.ts'
import { eventsOf, openScene, type Scene } from '../../support/scene.ts'
import { describe, test } from '../../support/side-by-side.ts'

const script = `---js\n(require('fs').writeFileSync('marker', ''), { status: 'done', finite_incantatem: true })\n---\n`
const task = (id: string) => ({ id, name: 'Build', done: false })
const writeTasks = (tasks: unknown) => writeMemory('tasks.json', JSON.stringify({ tasks }))

/** What was wrong, the file, the command that breaks it, and what codemachine says of it. */
const breakings: readonly (readonly [string, string, string, string])[] = [
  [
    'a front matter that is not closed',
    'MAIN.md',
    writeMemory('MAIN.md', '---\nstatus: x\n# Goal'),
    'its front matter is not closed',
  ],
  [
    'a front matter that is not YAML',
    'MAIN.md',
    writeMemory('MAIN.md', '---\n: [ {\n---\n'),
    'write the front matter as lines of key: value',
  ],
  ['a front matter that is a script', 'MAIN.md', writeMemory('MAIN.md', script), 'begin with --- alone'],
  ['100 MB', 'MAIN.md', `head -c 100000000 /dev/zero > ${folder}/MAIN.md`, '2 MiB'],
  ['a link to elsewhere', 'MAIN.md', `ln -sf /etc/passwd ${folder}/MAIN.md`, 'link'],
  ['no file', 'MAIN.md', `rm ${folder}/MAIN.md`, 'it is gone'],
  ['half a file', 'tasks.json', `printf '{ "tasks": [ { "id": "T1"' > ${folder}/tasks.json`, 'the file ends too early'],
  ['the same id twice', 'tasks.json', writeTasks([task('T1'), task('T1')]), 'duplicate id "T1" at tasks[1]'],
  [
    'a done that is a word',
    'tasks.json',
    writeTasks([{ ...task('T1'), done: 'yes' }]),
    'tasks[0].done is "yes"; use true or false',
  ],
  ['tasks that are no list', 'tasks.json', writeTasks({}), 'tasks is an object'],
  ['no folder', 'MAIN.md', 'rm -rf .codemachine', 'leave the folder where it is'],
]

promise('L5', 'A memory file that a round broke is put back from its last good copy, set aside, and told of')
describe('a round leaves in its memory', () => {
  let scene: Scene
  let ended: Ended
  beforeAll(async () => {
    scene = await openScene([...breakings.map(([, , command]) => round(command)), round(readMain.command, claimDone)])
    // None of these rounds changes the work, and that is not what this is about.
    const env = { CODEMACHINE_STALL_ROUNDS: '100' }
    ended = await scene.command(['--json', '--rounds', '20', 'build X'], { env }).ended
  })
  afterAll(() => scene[Symbol.asyncDispose]())

  test.each(breakings.map((each, index) => [...each, index + 1] as const))(
    '%s: the last good copy is put back, and the next round is told',
    (_what, file, _command, problem, round) => {
      const ends = ended.events.findIndex(event => event.type === 'round-ended' && event.round === round)
      const [broken] = eventsOf(ended.events.slice(ends), 'memory-broken')
      expect(broken?.problem).toMatchObject({ file, problem: expect.stringContaining(problem), restored: true })
      expect(scene.input(round + 1)).toContain(problem)
      expect(scene.input(round + 1)).toContain('codemachine restored the last good version.')
    },
  )

  test('all this, and the session comes to its end with its goal unharmed', () => {
    expect(ended.exitCode).toBe(0)
    expect(scene.memory('MAIN.md')).toContain('build X')
    expect(scene.model.requests.at(-2)?.lastOutputs[0]).toContain('build X')
    expect(readFileSync('/etc/passwd', 'utf8')).not.toContain('build X')
  })

  test('a script, which is never run', () => {
    expect(existsSync(join(scene.place.directory, 'marker'))).toBe(false)
    expect(git(scene.place, 'status', '--porcelain')).toBe('')
  })
})

promise('L21')
test('an agent that deletes the rules by which git ignores the memory has none of it committed by the next round', async () => {
  await using scene = await openScene([
    round('rm .codemachine/.gitignore; echo 1 > a.txt'),
    round('git add -A; git -c user.name=a -c user.email=a@b.c commit -qm all'),
    round(claimDone),
  ])
  const ended = await scene.run('--json', '--rounds', '5', 'build X')
  expect(ended.exitCode, ended.stderr).toBe(0)
  expect(git(scene.place, 'ls-files')).toBe('README.md\na.txt')
  expect(eventsOf(ended.events, 'warning').map(({ message }) => message)).toContainEqual(
    expect.stringContaining('.codemachine/.gitignore was gone'),
  )
})
