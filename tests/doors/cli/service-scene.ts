import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { message, reply } from '../../../src/demo/model/reply.ts'
import type { RealScene } from '../../support/real-scene.ts'
import { hold } from '../../support/scripted-model.ts'

const never = new Promise<never>(() => {})

export const working = [reply(message('Working.'), hold(never))]

/** A service manager that only writes down what it is asked; `exitCode`: how it ends. */
export async function withManager(scene: RealScene, exitCode = 0) {
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

export const unitOf = (scene: RealScene) => join(scene.place.home, '.config', 'systemd', 'user', 'codemachine.service')

/** The service, started by the very line of its unit, with the environment of that alone. */
export function asTheManagerDoes(scene: RealScene) {
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
