import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../../src/base/clock.ts'
import { roundsScript, type ScriptStep } from '../../src/demo/model/reply.ts'
import { OWN_ENGINES } from '../../src/engines/registry.ts'
import { codemachine, type RunningCodemachine, type StartOptions, startCodemachine } from './codemachine.ts'
import { codemachineHere, type InProcess, startInProcess } from './in-process.ts'
import { makePlace } from './place.ts'
import { endProcessesOf } from './processes.ts'
import { findIn, type OpenScene, type Scene, type SceneOptions, writePersonSettings } from './scene.ts'
import { chatGptLogin, type ScriptedModel, startScriptedModel } from './scripted-model.ts'

/** A scene of the built program, whose real codex talks to a scripted model. */
export interface RealScene extends Scene {
  model: ScriptedModel
  start(...args: string[]): RunningCodemachine
  command(args: readonly string[], options?: StartOptions): RunningCodemachine
}

export interface RealSceneOptions extends SceneOptions {
  /** Settings of the scripted provider, such as its retries. */
  provider?: Record<string, string | number | boolean>
  /** What a sub-agent plays. */
  subAgent?: ScriptStep
  /** More config.toml, after the provider's table. */
  config?: string
  /** Whose pauses are those between the pieces of what the model says. */
  modelClock?: Clock
}

/** Commands that show or change what lies in the records: they say the same in the test's process. */
const OF_RECORDS: ReadonlySet<string> = new Set(['list', 'status', 'logs', 'report', 'savepoints', 'limits'])

function beginsNoSession([command = '', what]: readonly string[]): boolean {
  return OF_RECORDS.has(command) || (command === 'queue' && what !== undefined && what !== 'run')
}

/** Fails fast where codex would try again for half a minute. */
export const IMPATIENT = { request_max_retries: 0, stream_max_retries: 0 }

/** Opens one. With an `account`, codex is logged in with ChatGPT. */
export const openRealScene: OpenScene<RealScene, RealSceneOptions> = async (rounds, options = {}) => {
  const { subAgent, account, modelClock } = options
  const model = await startScriptedModel({
    script: typeof rounds === 'function' ? rounds : roundsScript(rounds, subAgent ? { subAgent } : {}),
    ...(account ? { account } : {}),
    ...(modelClock ? { clock: modelClock } : {}),
  })
  const config = `${model.codexConfig('scripted', options.provider)}\n${options.config ?? ''}`
  const place = await makePlace(config, options)
  if (options.person !== undefined) await writePersonSettings(place, options.person)
  if (account) await writeFile(join(place.codexHome, 'auth.json'), chatGptLogin(Date.now()), { mode: 0o600 })
  const inProcess: InProcess[] = []
  return {
    model,
    place,
    engines: OWN_ENGINES,
    run: (...args) => (beginsNoSession(args) ? codemachineHere(place, args) : codemachine(place, args)),
    start: (...args) => startCodemachine(place, args),
    command: (args, more) => startCodemachine(place, args, more),
    startInProcess(args, options) {
      const started = startInProcess(place, args, options)
      inProcess.push(started)
      return started
    },
    ...findIn(place, model.requests),
    async [Symbol.asyncDispose]() {
      await Promise.all(inProcess.map(each => each[Symbol.asyncDispose]()))
      endProcessesOf(place)
      await place[Symbol.asyncDispose]()
      await model[Symbol.asyncDispose]()
    },
  }
}
