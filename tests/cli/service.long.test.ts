import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { hold, message, reply } from '../../src/demo/model/reply.ts'
import { killIfAlive } from '../support/kill-if-alive.ts'
import { openRealScene, type RealScene } from '../support/real-scene.ts'
import { claimDone, round } from '../support/rounds.ts'
import { test } from '../support/side-by-side.ts'

const never = new Promise<never>(() => {})
const working = [reply(message('Working.'), hold(never))]

/** A service manager that only writes down what it is asked; `exitCode`: how it ends. */
async function withManager(scene: RealScene, exitCode = 0) {
  const bin = join(scene.place.root, 'manager')
  const asked = join(scene.place.root, 'asked')
  await mkdir(bin)
  await writeFile(
    join(bin, 'systemctl'),
    `#!/bin/sh\necho "$*" >> '${asked}'\n[ ${exitCode} = 0 ] || echo No bus >&2\nexit ${exitCode}\n`,
    {
      mode: 0o755,
    },
  )
  scene.place.env.PATH = `${bin}:${scene.place.env.PATH}`
  return { asked: () => (existsSync(asked) ? readFileSync(asked, 'utf8') : '') }
}

const unitOf = (scene: RealScene) => join(scene.place.home, '.config', 'systemd', 'user', 'codemachine.service')

/** The service, started by the very line of its unit, with the environment of that alone. */
function asTheManagerDoes(scene: RealScene) {
  const unit = readFileSync(unitOf(scene), 'utf8')
  const words = [...(/^ExecStart=(.*)$/m.exec(unit)?.[1]?.matchAll(/"((?:[^"\\]|\\.)*)"/g) ?? [])].map(
    ([, word]) => word ?? '',
  )
  const variables = [...unit.matchAll(/^Environment="([^=]+)=(.*)"$/gm)].map(([, name, value]) => [name, value])
  const env = { ...Object.fromEntries(variables), HOME: scene.place.home }
  const [program = '', ...args] = words
  const child = spawn(program, args, { cwd: scene.place.home, env, stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  const waiting = new Set<() => void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
    for (const look of waiting) look()
  })
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  return {
    said: () => said,
    until: (what: RegExp) =>
      new Promise<void>((resolve, reject) => {
        const bound = setTimeout(() => reject(new Error(`Not said within 60 s: ${what}\n${said}`)), 60_000)
        const look = () => {
          if (!what.test(said)) return
          clearTimeout(bound)
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
    end: async () => {
      child.kill('SIGTERM')
      return await ended
    },
  }
}

test('the service works queues off, but not what a person has ended, until they add to it', async () => {
  await using scene = await openRealScene([working, round(claimDone), round(claimDone), round(claimDone)])
  await withManager(scene)
  await scene.run('service', 'install')
  await using running = scene.start('--json', 'build X')
  await running.event('item-completed', ({ item }) => item.kind === 'agent-message')
  await scene.run('queue', 'add', 'one thing')
  running.process.kill('SIGINT')
  await running.ended
  expect((await scene.run('service', 'status')).stdout).toContain('to do    nothing')
  await scene.run('queue', 'add', 'another thing')
  await using service = asTheManagerDoes(scene)
  await service.until(/works off the 2 prompts that wait\n[\s\S]*ended with exit code 0/)
  expect((await scene.run('queue', 'list')).stdout).toContain('Nothing waits')
  expect(scene.model.requests.flatMap(({ userTexts }) => userTexts).join('\n')).not.toContain('interrupted')
})

test('what was left before the service was installed is the person’s', async () => {
  await using scene = await openRealScene([working])
  await withManager(scene)
  const { pid } = JSON.parse((await scene.run('--detach', '--json', 'build X')).stdout)
  await killIfAlive(pid)
  await scene.run('service', 'install')
  expect((await scene.run('service', 'status')).stdout).toContain('to do    nothing')
})
