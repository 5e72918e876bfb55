import { expect } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'
import { test } from '../../support/side-by-side.ts'

test.each<[string[], string]>([
  [['-C', '../other', 'stop', '--now'], 'Write -C after stop: codemachine stop -C ../other …'],
  [['--cd=a b', 'queue', 'add', 'x'], "Write -C after queue add: codemachine queue add -C 'a b' …"],
  [['--json', 'resume'], 'Write --json after resume: codemachine resume --json …'],
  [['--no-keep-awake', 'resume'], 'Write --no-keep-awake after resume: codemachine resume --no-keep-awake …'],
  [['-c', 'a=1', '-c', 'b=2', 'resume'], "Write -c after resume: codemachine resume -c 'a=1' -c 'b=2' …"],
  [['--max-time', 'banana', 'status'], '--max-time does not apply to status; leave it out.'],
  [['--stream', 'mend the build'], '--stream works only with --agent <name>.'],
  [['--path', 'src', 'mend the build'], '--path works only with --agent <name>.'],
  [['--rounds', '3', 'demo'], '--rounds does not apply to demo; leave it out.'],
])('a flag before the command is refused, for it would not count: %j', async (args, said) => {
  await using place = await makePlace('')
  expect(await codemachineHere(place, args)).toMatchObject({
    exitCode: 2,
    stdout: '',
    stderr: `codemachine: ${said} (CM0102)\n`,
  })
})

test.each<[string[], RegExp]>([
  [['--version'], /^\d+\.\d+\.\d+/],
  [['--help'], /^Set up:/m],
  [['help', 'stop'], /^Usage: codemachine stop /],
  [['-C', '.', 'help', 'stop'], /^Usage: codemachine stop /],
  [['list', '-C', '.'], /^No sessions /],
])('a flag in its place is obeyed: %j', async (args, said) => {
  await using place = await makePlace('')
  expect(await codemachineHere(place, args)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(said),
    stderr: '',
  })
})
