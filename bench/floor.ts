import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestPlace } from '../tests/support/place.ts'
import { runCodemachine, runCommand } from './run-command.ts'

const CLIENT = fileURLToPath(new URL('bare-client.mjs', import.meta.url))

/** What codemachine says to an app-server in a place: its arguments, `GIT_DIR` and `PATH`, and the params of what it asks. */
interface Said {
  args: readonly string[]
  gitDir: string
  path: string
  initialize: object
  thread: object
  turn: object
}

/** Plays rounds in its own place with the least that can drive codex, saying what codemachine says in another. */
export interface Floor {
  /**
   * From its start to its end, ms.
   * @param asks whether codex finds the `lsb_release` of the machine, which codemachine keeps from it
   */
  run(rounds: number, asks?: boolean): Promise<number>
}

/**
 * @param codex the native codex
 * @param recorded where codemachine plays one round with this goal, so that it is known what it says
 * @param place where the floor plays
 */
export async function openFloor(codex: string, recorded: TestPlace, place: TestPlace, goal: string): Promise<Floor> {
  const said = await record(codex, recorded, goal)
  const { args, gitDir, initialize, thread, turn } = JSON.parse(
    JSON.stringify(said).replaceAll(recorded.root, place.root),
  ) as Said
  const orders = join(place.root, 'orders.json')
  const { directory } = place
  return {
    async run(rounds, asks = false) {
      await writeFile(orders, JSON.stringify({ codex, args, directory, rounds, initialize, thread, turn }))
      const env = { ...place.env, GIT_DIR: gitDir, ...(asks ? {} : { PATH: said.path }) }
      return (await runCommand(process.execPath, [CLIENT, orders], 0, { cwd: directory, env })).wallMs
    },
  }
}

async function record(codex: string, place: TestPlace, goal: string): Promise<Said> {
  const record = join(place.root, 'record')
  const relay = join(place.root, 'recorder.mjs')
  await writeFile(relay, `#!${process.execPath}\n${RECORDER(codex, record)}`, { mode: 0o755 })
  await runCodemachine(['--json', '--rounds', '1', '--codex-bin', relay, goal], 3, {
    cwd: place.directory,
    env: place.env,
  })
  const [start = '', ...lines] = (await readFile(record, 'utf8')).trim().split('\n')
  const messages = lines.map(line => JSON.parse(line) as { method?: string; params?: object })
  const paramsOf = (method: string): object => {
    const params = messages.find(message => message.method === method)?.params
    if (params === undefined) throw new Error(`codemachine has not sent ${method}.`)
    return params
  }
  return {
    ...(JSON.parse(start) as Pick<Said, 'args' | 'gitDir' | 'path'>),
    initialize: paramsOf('initialize'),
    thread: paramsOf('thread/start'),
    turn: paramsOf('turn/start'),
  }
}

/** A program that stands between codemachine and codex, and writes down what is said to codex. */
const RECORDER = (codex: string, record: string): string => `
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
const codex = ${JSON.stringify(codex)}, args = process.argv.slice(2)
if (args.includes('--version')) process.exit(spawnSync(codex, args, { stdio: 'inherit' }).status)
const write = text => appendFileSync(${JSON.stringify(record)}, text)
write(JSON.stringify({ args, gitDir: process.env.GIT_DIR, path: process.env.PATH }) + '\\n')
const child = spawn(codex, args, { stdio: ['pipe', 'inherit', 'inherit'] })
process.stdin.on('data', chunk => {
  write(chunk)
  child.stdin.write(chunk)
}).on('end', () => child.stdin.end())
child.on('exit', code => process.exit(code ?? 1))
`
