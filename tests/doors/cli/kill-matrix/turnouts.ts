import { statSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../../../src/base/clock.ts'
import { functionCall, message, reply, shell } from '../../../../src/demo/model/reply.ts'
import type { Command } from '../../../../src/session/records/control.ts'
import { sendCommand } from '../../../../src/session/records/control.ts'
import { folder } from '../../../support/rounds.ts'
import type { Scene } from '../../../support/scene.ts'
import { usageLimitReached } from '../../../support/scripted-model.ts'
import { untilInFolder } from '../../../support/until-in-folder.ts'
import { nextPart, type Turnout, writeByShell } from './work.ts'

/** The provider is busy when it is asked first. */
export function busyOnce(): Turnout {
  return once(() => ({ kind: 'status', status: 429, body: { error: { message: 'slow down' } } }))
}

/** The usage window of codex is full once there is a part; another agent, which is told nothing as developer, does the rest. */
export const full: Turnout = ({ place }, { step, developerTexts }) => {
  const { first, command } = nextPart(place.directory)
  if (developerTexts.length > 0)
    return first || step > 0 ? null : usageLimitReached(Math.ceil(Date.now() / 1000) + 7_200)
  if (step > 1) return reply(message('That was one step.'))
  return step === 0 ? reply(writeByShell('parts/2.md', 'Draft of part 2.\n')) : reply(shell(command))
}

/** The connection breaks off in the first answer. */
export function brokenOnce(): Turnout {
  return once(() => ({ ...reply(message('I look at what')), end: { kind: 'cut', afterEvents: 3, how: 'reset' } }))
}

/** The agent removes a folder by force, about which codex asks. */
export const forceful: Turnout = ({ place }, { step }) =>
  step === 2 ? reply(shell(`rm -rf parts/.old\n${nextPart(place.directory).command}`)) : null

const PLANT_HOOK = 'echo "exit 1" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit'

/** The round of the first part leaves a broken memory file, a goal that is gone, and a hook in the repository. */
export const meddling: Turnout = ({ place }, { step }) => {
  const { first, command } = nextPart(place.directory)
  if (step !== 2 || !first) return null
  return reply(
    shell(
      `${command}\n${PLANT_HOOK}\nprintf '{"tasks": [' > ${folder}/tasks.json; sed -i 's/^# Goal$/# Aim/' ${folder}/MAIN.md`,
    ),
  )
}

/** The round of the first part changes the project's settings, and a later one takes that back. */
export const unsettling: Turnout = ({ place }, { step }) => {
  const { first, command } = nextPart(place.directory)
  return step === 2 ? reply(shell(`${command}\n${first ? ': >' : 'rm -f'} codemachine.toml`)) : null
}

/** As `meddling`, with a command that is still in the sandbox when the round has said all. */
export function lingering(): Turnout {
  let isPlanting = false
  return async ({ place }, { step }) => {
    const { first, command } = nextPart(place.directory)
    if (step === 2 && first) {
      isPlanting = true
      return reply(shell(`${command}\n${PLANT_HOOK}\nsleep 307`, { yieldMs: 500 }))
    }
    if (step === 3 && isPlanting) {
      // However slow the machine is, the part is made before the round ends.
      const hooks = join(place.directory, '.git', 'hooks')
      await untilInFolder(hooks, 'a hook', () => (isExecutable(join(hooks, 'pre-commit')) ? true : null))
      isPlanting = false
    }
    return null
  }
}

function isExecutable(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o100) !== 0
}

/** The agent does nothing until it is told to choose another way. */
export const idle: Turnout = ({ place }, { userTexts }) =>
  nextPart(place.directory).first && !userTexts.some(text => text.includes('try another approach'))
    ? reply(message('There is nothing to do.', { phase: 'final_answer' }))
    : null

/** The agent would like to ask a person. */
export const asking: Turnout = (_, { step }) =>
  step === 0 ? reply(functionCall('ask_person', { question: 'Which parts?', options: [], assumption: 'Both.' })) : null

/** Settings of the person: a gate that is made of what the rounds make. */
export const PROTECTING = '[[gates]]\nname = "parts"\nrun = "true"\nprotect = ["parts/1.txt"]\n'

/** The reviewer agrees. */
export const reviewed: Turnout = (_, { userTexts }) =>
  userTexts.some(text => text.includes('in the words of the person:'))
    ? reply(message(JSON.stringify({ verdict: 'agreed', summary: 'All is there.', findings: [] })))
    : null

/** An author writes a contract of the goal `build X`, and wrong versions of what the rounds make are written. */
export const proving: Turnout = (_, { userTexts }) => {
  const input = userTexts.join('\n')
  if (input.includes('Write the contract as')) return says({ sentences: [BUILT, KEPT] })
  if (!input.includes('Write the versions as')) return null
  const path = input.includes('your versions break (keep)') ? 'README.md' : 'parts/2.txt'
  return says({ versions: [{ summary: 'Wrong.', edits: [{ path, find: null, text: 'wrong\n' }] }] })
}

const BUILT = sentence('build', 'must', 'grep -qx "part 2" parts/2.txt')
const KEPT = sentence('X', 'keep', 'grep -q project README.md')

function sentence(quote: string, kind: string, run: string) {
  return { quote, kind, reason: null, checks: [{ run, seconds: 30, needs: null, files: [] }] }
}

function says(answer: object): ReturnType<Turnout> {
  return reply(message(JSON.stringify(answer), { phase: 'final_answer' }))
}

/** A person asks for these, from another terminal, while the model thinks about its second step for the first time. */
export function asked(...commands: readonly Asked[]): Turnout {
  let isAsked = false
  return async (scene, { step }) => {
    if (step !== 1 || isAsked) return null
    isAsked = true
    for (const command of commands) await ask(scene, command)
    return null
  }
}

type Asked = Command extends infer Each ? (Each extends Command ? Omit<Each, 'at'> : never) : never

async function ask(scene: Scene, command: Asked): Promise<void> {
  const at = new Date(systemClock.now()).toISOString()
  const options = { clock: systemClock, timeoutMs: 1000 }
  await sendCommand(join(scene.records(), 'control'), { ...command, at } as Command, options)
}

function once(turnout: () => ReturnType<Turnout>): Turnout {
  let isOver = false
  return () => {
    if (isOver) return null
    isOver = true
    return turnout()
  }
}
