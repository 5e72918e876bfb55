import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, vi } from 'vitest'
import { roundsScript } from '../../../../src/demo/model/reply.ts'
import { OWN_ENGINES } from '../../../../src/engines/registry.ts'
import type { Ended } from '../../../support/codemachine.ts'
import { codemachineHere } from '../../../support/in-process.ts'
import { startWithKills } from '../../../support/kill-points.ts'
import { processesOf } from '../../../support/processes.ts'
import { isOnReach } from '../../../support/reach.ts'
import type { RealScene } from '../../../support/real-scene.ts'
import { eventsOf } from '../../../support/scene.ts'
import { scriptedEngine } from '../../../support/scripted-engine.ts'
import { openWork, treeOf, workIn, writeByShell } from './work.ts'

/** A session that was cut off in its third round, of which nothing is left but what lies on the disk. */
export interface CutOff {
  scene: RealScene
  /** What lay on the disk. */
  kept: string
  tree: string
}

type WithCutOff = (use: (cut: CutOff) => Promise<void>) => Promise<void>

/**
 * Has such sessions made before the tests of a file, one for each that runs at a time, and removed after them. A test
 * gets one as it was on the disk when it was cut off, to itself.
 */
export function keepCutOffs(): WithCutOff {
  vi.setConfig({ maxConcurrency: SCENES })
  const made: CutOff[] = []
  const free: CutOff[] = []
  const waiting: ((scene: CutOff) => void)[] = []

  beforeAll(async () => {
    await Promise.all(Array.from({ length: SCENES }, async () => made.push(await cutOff())))
    free.push(...made)
  })
  afterAll(async () => {
    for (const { scene, kept } of made) {
      rmSync(kept, { recursive: true, force: true })
      await scene[Symbol.asyncDispose]()
    }
  })

  return async use => {
    const cut = free.pop() ?? (await new Promise<CutOff>(resolve => waiting.push(resolve)))
    const { root } = cut.scene.place
    try {
      for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true, force: true })
      cpSync(cut.kept, root, { recursive: true, preserveTimestamps: true })
      await use(cut)
    } finally {
      const next = waiting.shift()
      if (next) next(cut)
      else free.push(cut)
    }
  }
}

const SCENES = 3

async function cutOff(): Promise<CutOff> {
  const scene = await openWork()
  const { place } = scene
  const points = [{ victim: 'both', event: 'turn-started', when: 'after', n: 3 }] as const
  expect((await startWithKills(place, ['--no-keep-awake', 'build X'], points).ended).signal).toBe('SIGKILL')
  const kept = `${place.root}-kept`
  cpSync(place.root, kept, { recursive: true, preserveTimestamps: true })
  return { scene, kept, tree: treeOf(place) }
}

/** What a power cut makes of a file: not all of it is there, or there are zeros where it was to be written. */
const DAMAGES = {
  'is empty': () => Buffer.alloc(0),
  'is torn': bytes => bytes.subarray(0, bytes.length >> 1),
  'is all zeros': bytes => Buffer.alloc(bytes.length),
  'is gone': () => null,
} satisfies Record<string, (bytes: Buffer) => Buffer | null>

/** Each with its name. */
export const damages = Object.entries(DAMAGES)

/** Does that to a file. */
export function damage(path: string, change: (bytes: Buffer) => Buffer | null): void {
  const changed = change(readFileSync(path))
  if (changed === null) rmSync(path)
  else writeFileSync(path, changed)
}

/** The path of a file among the records of the session. */
export function sessionFile({ scene }: CutOff, name: string): string {
  const sessions = join(scene.records(), 'sessions')
  return join(sessions, readdirSync(sessions)[0] ?? '', name)
}

/** The path of a memory file of the session. */
export function memoryFile({ scene }: CutOff, name: string): string {
  const projects = join(scene.place.directory, '.codemachine', 'projects')
  return join(projects, readdirSync(projects)[0] ?? '', name)
}

/** Goes on with the session in this process. */
export async function resume({ scene }: CutOff): Promise<Ended> {
  const { place } = scene
  const { kind } = scriptedEngine({ script: roundsScript(workIn(usual => usual(place.directory), writeByShell)) })
  const engines = new Map([...OWN_ENGINES, ['codex', kind] as const])
  return await codemachineHere(place, ['resume', '--json', '--no-keep-awake'], { engines })
}

/** Resumes, and expects that the session then is done, and as it was to be. Answers its warnings. */
export async function expectDone(cut: CutOff): Promise<string[]> {
  const { scene, tree } = cut
  const { exitCode, stderr, events } = await resume(cut)
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(treeOf(scene.place)).toBe(tree)
  expect(processesOf(scene.place)).toEqual([])
  return eventsOf(events, 'warning')
    .filter(({ round }) => round === null)
    .map(({ message }) => message)
    .filter(message => !isOnReach(message))
}

/** Resumes, and expects one sentence with a hint at the most. */
export async function expectSentence(cut: CutOff, exitCode: number, sentence: RegExp): Promise<void> {
  const ended = await resume(cut)
  expect(ended).toMatchObject({ exitCode, stdout: '' })
  expect(ended.stderr).toMatch(sentence)
  expect(ended.stderr).toMatch(/^codemachine: [^\n]+\. \(CM\d{4}\)\n( {2}[^\n]+\n)?$/)
}
