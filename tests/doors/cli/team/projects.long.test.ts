import { existsSync, readdirSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { takeRunLock } from '../../../../src/session/records/run-lock.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { promise } from '../../../support/promise.ts'
import { askHuman, GREETING, openTeamScene, plans, reviews, runs, works } from '../../../support/team-scene.ts'

promise('T13', 'The projects of a workspace are listed with what came of them, and removed only as a person says')
test('the projects of a workspace are listed with what came of them, shown whole, and removed as a person says', async () => {
  await using scene = await openTeamScene(GREETING)
  const { place } = scene
  const team = await scene.command(['team', '--yes', '--no-keep-awake', 'greet somebody']).ended
  expect({ exitCode: team.exitCode, stderr: team.stderr }).toEqual({ exitCode: 0, stderr: '' })
  expect(team.stdout).not.toContain('--follow-up')
  const here = (args: readonly string[], options = {}) => codemachineHere(place, ['team', ...args], options)
  const name = basename(scene.project())
  expect(await scene.setSecret('SERVICE_API_KEY', 'sk-live-0123456789abcdef')).toMatchObject({ exitCode: 0 })

  const listed = await here(['list'])
  expect(listed.stdout).toMatch(
    new RegExp(`^${name}  .*done.*  3 of 3 steps  greet somebody\\n {4}to test it: .*start\\.sh`),
  )
  expect(JSON.parse((await here(['list', '--json'])).stdout)).toMatchObject([
    {
      name,
      goal: 'greet somebody',
      standing: 'ended',
      outcome: { kind: 'done' },
      steps: { done: 3, all: 3 },
      missing: [],
    },
  ])
  for (const command of ['status', 'list']) {
    const { stdout } = await codemachineHere(place, [command])
    expect(stdout).toMatch(/No sessions .*\n(.*\n)*Projects of teams in projects\/: codemachine team list\n$/)
  }
  const shown = await here(['show', name])
  expect(shown.stdout).toContain('✓ 2 Write start.sh.')
  expect(shown.stdout).toContain('Secrets\n  SERVICE_API_KEY\n')
  expect(shown.stdout).toMatch(/Runs\n {2}\d{8}_1 .* all +done.* \S+\/runs\/greet-somebody-\S+\.json\n/)
  expect(JSON.parse((await here(['show', scene.project(), '--json'])).stdout)).toMatchObject({
    steps: [{ id: 1, status: 'done' }, { id: 2 }, { id: 3 }],
    review: { overall_assessment: 'It is good.' },
    secrets: ['SERVICE_API_KEY'],
    runs: [{ mode: 'all', outcome: { kind: 'done' } }],
  })
  expect(await here(['show', 'nothing'])).toMatchObject({
    exitCode: 2,
    stderr: 'codemachine: "nothing" is not a project of a team. (CM1008)\n  The projects here: codemachine team list\n',
  })
  await symlink(scene.project(), join(place.directory, 'link'))
  expect((await here(['rm', 'link', '--yes'])).exitCode).toBe(2)

  expect(await here(['rm', name])).toMatchObject({
    exitCode: 2,
    stderr:
      'codemachine: Without a terminal, or with --json, codemachine cannot ask you; --yes removes the project, its records and its secrets. (CM0105)\n',
  })
  expect(await here(['rm', name], { tty: true, input: 'n\n\nno\n' })).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('Nothing is removed.'),
  })
  expect((await here(['show', name])).stdout).toContain('SERVICE_API_KEY')
  const path = scene.project()
  const removed = await here(['rm', name, '--yes', '--json'])
  expect(removed.exitCode).toBe(0)
  expect(JSON.parse(removed.stdout)).toEqual({
    v: 1,
    message: 'Removed: project, records, secrets.',
    removed: ['project', 'records', 'secrets'],
  })
  expect(existsSync(path)).toBe(false)
  expect(readdirSync(join(place.home, '.codemachine', 'state')).filter(each => each.startsWith('greet'))).toEqual([])
  expect(existsSync(place.directory)).toBe(true)
  expect(readdirSync(join(place.directory, 'runs')).filter(each => each.endsWith('.json'))).toHaveLength(1)
  expect((await here(['list'])).stdout).toContain('There are no projects in ')
})

promise('T13')
test('a project whose records were removed, and whose secrets stay, stands in the way of no other', async () => {
  await using scene = await openTeamScene({ planner: [[plans('Write greet.sh.')]] })
  const { place } = scene
  expect((await scene.command(['team', 'plan', '--no-keep-awake', 'greet somebody']).ended).exitCode).toBe(0)
  const path = scene.project()
  expect(await scene.setSecret('SERVICE_API_KEY', 'sk-live-0123456789abcdef')).toMatchObject({ exitCode: 0 })
  const here = (args: readonly string[], input = '') => codemachineHere(place, args, input ? { tty: true, input } : {})
  expect((await here(['team', 'rm', basename(path)], 'n\ny\nn\n')).stdout).toContain('Removed: records.')
  expect(await here(['team', 'list'])).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('There are no projects in '),
  })
  expect(await here(['team', 'show', basename(path)])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('is not a project of a team.'),
  })
  expect(await here(['secret', 'list'])).toMatchObject({ exitCode: 0, stderr: '' })
  expect((await here(['secret', 'list', '-C', path])).stdout).toContain('SERVICE_API_KEY')
})

promise('T13')
test('what is kept of a project is removed later by its name, though its directory is gone; while a session runs in it nothing is', async () => {
  await using scene = await openTeamScene({ planner: [[plans('Write greet.sh.')]] })
  const { place } = scene
  expect((await scene.command(['team', 'plan', '--no-keep-awake', 'greet somebody']).ended).exitCode).toBe(0)
  const path = scene.project()
  const name = basename(path)
  expect(await scene.setSecret('SERVICE_API_KEY', 'sk-live-0123456789abcdef')).toMatchObject({ exitCode: 0 })
  const remove = (input: string) => codemachineHere(place, ['team', 'rm', name], { tty: true, input })
  const lock = await takeRunLock(join(scene.records(), 'lock'), {
    platform: process.platform,
    pid: process.pid,
    now: new Date(),
  })
  expect(await codemachineHere(place, ['team', 'rm', name, '--yes'])).toMatchObject({
    exitCode: 6,
    stderr: expect.stringContaining(`\n  To end it: codemachine stop --now -C ${path}\n`),
  })
  await lock[Symbol.asyncDispose]()
  const project = await remove('y\nn\nn\n')
  expect(project.stdout).toContain('Removed: project.')
  expect(project.stderr).toContain(`To remove the rest later: codemachine team rm ${path}`)
  const records = await remove('y\nn\n')
  expect(records.stdout).not.toContain('Remove the project')
  expect(records.stdout).toContain('Removed: records.')
  expect(records.stderr).not.toContain('The directory stays')
  const rest = await codemachineHere(place, ['team', 'rm', path, '--yes'])
  expect(rest).toMatchObject({ exitCode: 0, stdout: 'Removed: records, secrets.\n', stderr: '' })
  expect(readdirSync(join(place.home, '.codemachine', 'state')).filter(each => each.startsWith('greet'))).toEqual([])
  expect(await remove('')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('is not a project of a team.'),
  })
})

promise('T13')
test('a step that an interruption has broken off is shown as that, and not as one at work', async () => {
  await using scene = await openTeamScene({ planner: [[plans('Wait.')]], worker: { 1: [runs('sleep 30')] } })
  await using run = scene.start('team', '--yes', '--no-keep-awake', '--json', 'wait a while')
  await run.event('round-started', ({ part }) => part === 'work')
  const show = async () => (await scene.run('team', 'show', scene.project())).stdout
  expect(await show()).toContain('▸ 1 Wait. (at work)')
  run.signal('SIGTERM')
  expect((await run.ended).exitCode).toBe(143)
  expect(await show()).toContain('· 1 Wait. (broken off)')
})

promise('T45', '`team plan` and `team review` have their JSON on stdout and nothing else')
test('the planner alone has its JSON on stdout and nothing else, and so has the reviewer of a directory that is there, which stays', async () => {
  const issue = { description: 'No tests.', severity: 'low' as const }
  await using scene = await openTeamScene({
    planner: [[plans('Write greet.sh.', 'Write a README.')]],
    reviewer: [[reviews(issue)]],
  })
  const { place } = scene
  const plan = await scene.command(['team', 'plan', '--no-keep-awake', 'greet somebody']).ended
  expect(plan.exitCode).toBe(0)
  expect(JSON.parse(plan.stdout)).toEqual({
    goal: 'The goal, restated.',
    steps: [
      expect.objectContaining({ id: 1, description: 'Write greet.sh.' }),
      expect.objectContaining({ id: 2, description: 'Write a README.' }),
    ],
  })
  expect(plan.stderr).toMatch(/To carry it out: codemachine resume \d{8}_1 -C projects\/greet-somebody-/)

  const api = join(place.directory, 'api')
  await mkdir(api)
  await writeFile(join(api, 'README.md'), 'An API.\n')
  const review = await scene.command(['team', 'review', '--project', 'api', '--no-keep-awake', '--json']).ended
  expect(JSON.parse(review.stdout)).toEqual({
    overall_assessment: 'Something is wrong.',
    issues: [{ type: 'bug', ...issue }],
    suggestions: ['Add more tests.'],
  })
  expect(review.stderr).toContain('{"v":1')
  const list = await codemachineHere(place, ['team', 'list', '--json'])
  expect(JSON.parse(list.stdout)).toMatchObject([{ directory: scene.project() }, { name: 'api', directory: api }])
  // What names no directory, or is no file of a run, names none.
  for (const name of ['a', 'b', 'c']) await mkdir(join(place.directory, 'runs', `${name}.json`))
  await writeFile(join(place.directory, 'runs', 'd.json'), '{\n"project_dir": "api"\n}\n')
  await writeFile(join(place.directory, 'runs', 'e.json'), '{\n"project_dir": "/\\x"\n}\n')
  expect((await codemachineHere(place, ['team', 'list', '--json'])).stdout).toBe(list.stdout)
  const removed = await codemachineHere(place, ['team', 'rm', 'api', '--yes'])
  expect(removed).toMatchObject({ exitCode: 0, stdout: 'Removed: records.\n' })
  expect(removed.stderr).toContain('The directory stays')
  expect(existsSync(join(api, 'README.md'))).toBe(true)
})

test('a project that waits for a secret is listed with the line to type: first that stores it, then that goes on; a reviewer alone is told what its steps came to', async () => {
  await using scene = await openTeamScene({
    worker: { 1: [[askHuman('SERVICE_API_KEY'), works({ done: false, thoughts: 'It waits.' })]] },
    reviewer: [[reviews()]],
  })
  const { place } = scene
  expect((await scene.command(['team', '--yes', '--no-keep-awake', 'ask a service']).ended).exitCode).toBe(4)
  const list = async () => (await codemachineHere(place, ['team', 'list'])).stdout
  const at = `-C ${scene.project()}`
  expect(await list()).toContain(`\n    it needs: codemachine secret set SERVICE_API_KEY ${at}\n`)
  expect(await scene.setSecret('SERVICE_API_KEY', 'sk-live-0123456789abcdef')).toMatchObject({ exitCode: 0 })
  const stored = await list()
  expect(stored).not.toContain('it needs')
  expect(stored).toContain(`\n    to continue: codemachine resume ${at}\n`)
  expect(await codemachineHere(place, ['resume'])).toMatchObject({
    exitCode: 2,
    stderr: `codemachine: No session in ${place.directory} can be resumed. (CM0605)\n  To list the projects of teams: codemachine team list\n`,
  })
  const review = await scene.command(['team', 'review', '--project', scene.project(), '--no-keep-awake']).ended
  expect(review.exitCode, review.stderr).toBe(0)
  expect(scene.begun('reviewer').at(-1)?.userTexts.join('\n')).toContain('"thoughts": "It waits."')
})
