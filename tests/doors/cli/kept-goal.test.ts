import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply } from '../../../src/demo/model/reply.ts'
import { incident, promise } from '../../support/promise.ts'
import { flagDone, folder, readMain, round } from '../../support/rounds.ts'
import { eventsOf, openScene } from '../../support/scene.ts'
import { hold } from '../../support/scripted-model.ts'
import { test } from '../../support/side-by-side.ts'

const GOAL = 'Write one.txt and two.txt.'
/** No round of these changes the work, and that is not what they are about. */
const PATIENT = { env: { CODEMACHINE_STALL_ROUNDS: '100' } }

const TASK = JSON.stringify({ tasks: [{ id: 'T1', name: 'write one.txt', done: true }] })
const claim = `echo '${TASK}' > ${folder}/tasks.json; ${flagDone}`
/** A command that puts this in the place of the line of the goal. */
const asGoal = (line: string) => `sed -i 's/^${GOAL}$/${line}/' ${folder}/MAIN.md`

/** What an agent does to the goal, how it ended, and what stood there. */
const NARROWINGS: readonly (readonly [string, string, string | null])[] = [
  [asGoal('Write one.txt.'), 'changed', 'Write one.txt.'],
  [asGoal(''), 'changed', null],
  [asGoal('Have a rest.'), 'changed', 'Have a rest.'],
  [asGoal(`${GOAL}\\nThe second is optional.`), 'changed', 'The second is optional.'],
  [`sed -i 's/^# Goal/# Background/' ${folder}/MAIN.md`, 'removed', null],
  [`sed -i '/^# Goal/d' ${folder}/MAIN.md`, 'removed', null],
  [asGoal('Schreib one.txt und two.txt.'), 'changed', 'Schreib one.txt und two.txt.'],
  [`printf '\\n# Goal\\n\\nOnly one.txt.\\n' >> ${folder}/MAIN.md`, 'changed', 'Only one.txt.'],
]

promise(
  'D64',
  'A goal that a round shortens, pads, replaces, moves, translates or removes in `MAIN.md` is put back, said, told to the next round, and refuses the claim',
)
incident('false done', 'An agent made the goal in `MAIN.md` smaller, did that, and was done', {
  since: '2026-11-21',
  fixed: '2026-11-29',
  foundBy: 'scripted attacks',
})
test('an agent that makes the goal smaller and claims it: the goal is put back, the claim refused, and the next round told', async () => {
  const note = `printf '\\n## Notes\\n\\nMine.\\n' >> ${folder}/MAIN.md`
  await using scene = await openScene([
    round('touch one.txt', note),
    ...NARROWINGS.map(([command]) => round(`${command}; ${claim}`)),
    round(readMain.command, 'touch two.txt', claim),
    round(claim),
  ])
  const ended = await scene.command(['--json', '--rounds', '20', GOAL], PATIENT).ended
  expect(ended.exitCode, ended.stderr).toBe(0)
  const { events } = ended
  expect(eventsOf(events, 'goal-restored').map(({ round: of, how }) => [of, how])).toEqual(
    NARROWINGS.map(([, how], at) => [at + 2, how]),
  )
  for (const [at, { found, file, restored }] of eventsOf(events, 'goal-restored').entries()) {
    const wanted = NARROWINGS[at]?.[2] ?? null
    expect([file, restored]).toEqual(['MAIN.md', true])
    if (wanted !== null) expect(found).toContain(wanted)
  }
  const refused = eventsOf(events, 'done-refused')
  expect(refused.map(({ reason }) => reason)).toEqual([...NARROWINGS.map(() => 'goal-changed'), 'tree-changed'])
  for (let of = 1; of <= NARROWINGS.length + 3; of++) {
    expect(scene.input(of)).toMatch(
      /^The goal, in the words of the person\..*\n\n\[begin (\w+)\]\nWrite one\.txt and two\.txt\.\n\[end \1\]\n\nContinue/,
    )
    expect(scene.input(of).includes('The goal in MAIN.md was ')).toBe(of > 2 && of <= NARROWINGS.length + 2)
  }
  const main = scene.memory('MAIN.md')
  expect(main).toContain(`# Goal\n\n\`\`\`text\n${GOAL}\n\`\`\`\n`)
  expect(main).toContain('## Notes\n\nMine.\n')
  expect(main).not.toContain('optional')
  expect(JSON.parse(scene.recorded('done.json')).goal).toBe(GOAL)
  expect(scene.memory('report.md')).toContain(
    'After round 2, the goal in MAIN.md was changed, and it was restored. The changed text:',
  )
})

promise('D65', 'White space, line ends, Unicode form, fence and level of the heading are no change of the goal')
test('white space, line ends and the level of a heading are nothing to be told', async () => {
  await using scene = await openScene([
    round(`sed -i 's/^# Goal/### Goal/; s/^${GOAL}$/${GOAL} \\r\\n/' ${folder}/MAIN.md; touch one.txt two.txt`),
    round(claim),
  ])
  const { exitCode, events } = await scene.run('--json', GOAL)
  expect([exitCode, eventsOf(events, 'goal-restored')]).toEqual([0, []])
})

promise(
  'D63',
  "The input of each round begins with the goal in the person's words, and with what they said later; a long goal stands whole in a file that no round can change for the next",
)
test('of a long goal each round is told the beginning, and reads the whole in a file that no round can change for the next', async () => {
  const goal = `Write one.txt.\n${'And much more of the same.\n'.repeat(400)}At last write two.txt.`
  const read = `cat ${folder}/GOAL.md`
  const main = `cat ${folder}/MAIN.md`
  await using scene = await openScene([
    round(`${read}; echo 'Write one.txt.' > ${folder}/GOAL.md`),
    round(`${read}; rm ${folder}/GOAL.md; mkdir -p ${folder}/GOAL.md/x`),
    round(`${read}; ln -sf /etc/hostname ${folder}/GOAL.md`),
    round(read),
    round(`${main}; sed -i 's/^At last .*//' ${folder}/MAIN.md; ${claim}`),
    round(main),
  ])
  const { events } = await scene.command(['--json', '--rounds', '6', goal], PATIENT).ended
  for (let of = 1; of <= 6; of++) {
    const input = scene.input(of)
    expect(input.length).toBeLessThan(10_000)
    expect(input).toMatch(/^The goal, in the words of the person\. .*\n\n\[begin \w+\]\nWrite one\.txt\.\nAnd much/)
    expect(input).toMatch(
      /\nNot all of it stands here\. The whole is in `\.codemachine\/projects\/\w+\/GOAL\.md`: read that first\.\n\nContinue/,
    )
  }
  const printed = scene.model.requests.filter(({ step }) => step === 1).map(({ lastOutputs }) => lastOutputs[0] ?? '')
  for (const of of [0, 1, 2, 3]) expect(printed[of]).toContain('At last write two.txt.')
  expect(printed[5]).toContain('At last write two.txt.')
  expect(eventsOf(events, 'goal-restored')).toMatchObject([{ round: 5, how: 'changed' }])
  expect(eventsOf(events, 'done-refused')).toMatchObject([{ round: 5, reason: 'goal-changed' }])
})

promise('D66', 'Secrets in a goal stay in `MAIN.md` when it is put back, and reach no input and no journal')
test('a secret in the goal stays where it was, and is in no input and no record of the goal', async () => {
  const secret = 'sk-live-0123456789abcdef'
  const goal = `Write one.txt with ${secret} and two.txt.`
  await using scene = await openScene([
    round('touch one.txt'),
    round(`sed -i 's/^Write one.txt with .*/Write one.txt./' ${folder}/MAIN.md; ${claim}`),
    round(claim),
  ])
  const env = { MY_API_TOKEN: secret, CODEMACHINE_STALL_ROUNDS: '100' }
  const { exitCode, events, stdout } = await scene.command(['--json', '--rounds', '4', goal], { env }).ended
  expect([exitCode, stdout.includes(secret)]).toEqual([0, false])
  expect(eventsOf(events, 'goal-restored')).toMatchObject([{ round: 2, how: 'changed' }])
  expect(scene.memory('MAIN.md')).toContain(goal)
  expect(scene.input(3)).toContain('Write one.txt with [secret MY_API_TOKEN] and two.txt.')
  expect(scene.input(3)).not.toContain(secret)
  // Without the variable nobody knows any more what the secret was; the goal is still the same.
  const resumed = await scene.command(['resume', '--json', '--rounds', '5'], {}).ended
  expect(eventsOf(resumed.events, 'goal-restored')).toEqual([])
})

promise('D63')
test('what a person says stands in the input of each later round, also of a session that goes on', async () => {
  const gate = Promise.withResolvers<void>()
  await using scene = await openScene([
    [reply(message('Working.'), hold(gate.promise)), ...round('touch one.txt')],
    round('touch two.txt'),
    round('touch three.txt'),
    round('touch four.txt'),
  ])
  await using running = scene.start('--json', '--rounds', '3', GOAL)
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('steer', 'Never use\ntabs.')
  gate.resolve()
  await running.ended
  await scene.run('resume', '--json', '--rounds', '4')
  expect(scene.input(1)).not.toContain('tabs')
  for (const of of [2, 3, 4]) {
    expect(scene.input(of)).toMatch(
      /\n\nWhat the person has said later\. .*\n\n\[begin (\w+)\]\n- Never use\n {2}tabs\.\n\[end \1\]\n\nContinue/,
    )
  }
  expect(existsSync(join(scene.place.directory, 'four.txt'))).toBe(true)
})
