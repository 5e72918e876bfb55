import type { ScriptStep } from '../../src/demo/model/reply.ts'
import { message, reply, shell } from '../../src/demo/model/reply.ts'
import { hold } from './scripted-model.ts'

/** The shell path of the session's folder: that of the newest session. */
export const folder = '$(ls -d .codemachine/projects/* | sort -V | tail -1)'

/** A round that runs these commands, one model response each, and says that it is over. */
export function round(...commands: readonly string[]): ScriptStep[] {
  return [...commands.map(command => reply(shell(command))), says('This is as far as it goes.')]
}

/** A step in which the model only says something, which ends its turn. */
export function says(text: string): ScriptStep {
  return reply(message(text))
}

/** A step that says "Working.", waits for the promise, and goes on with its turn. */
export function held(until: Promise<unknown>): ScriptStep {
  return reply(message('Working.'), hold(until), shell('true'))
}

/** A command that claims done in MAIN.md, and nothing else. */
export const flagDone = `sed -i 's/^finite_incantatem: false/finite_incantatem: true/' ${folder}/MAIN.md`

const DONE_TASKS = JSON.stringify({ tasks: [{ id: 'T1', name: 'build it', done: true }] })

/** A command that claims done in MAIN.md; where there is no plan yet, its one task is written down as done. */
export const claimDone = `grep -q '"id"' ${folder}/tasks.json || echo '${DONE_TASKS}' > ${folder}/tasks.json; ${flagDone}`

/** A command that prints MAIN.md, and its path in a shell. */
export const readMain = { command: `cat ${folder}/MAIN.md`, file: `${folder}/MAIN.md` }

/** A command that writes tasks.json. */
export function writeTasks(tasks: readonly { id: string; name: string; done: boolean }[]): string {
  return writeMemory('tasks.json', JSON.stringify({ tasks }, null, 2))
}

/** A command that writes a memory file as it is given. */
export function writeMemory(file: string, text: string): string {
  return `cat > ${folder}/${file} <<'END'\n${text}\nEND`
}
