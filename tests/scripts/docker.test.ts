import { access, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load, YAML11_SCHEMA } from 'js-yaml'
import { expect, test } from 'vitest'
import { ROLES } from '../../src/fleet/schema.ts'
import { promise } from '../support/promise.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DOCKER = join(ROOT, 'docker')

interface Service {
  build: { context: string; dockerfile: string }
  image?: string
  command?: string[]
  environment?: Record<string, string>
  deploy?: { replicas: number }
  profiles?: string[]
  entrypoint?: string[]
  volumes: string[]
  privileged?: boolean
}

async function readCompose(): Promise<{ services: Record<string, Service>; volumes: Record<string, unknown> }> {
  return load(await readFile(join(DOCKER, 'compose.yml'), 'utf8'), { schema: YAML11_SCHEMA }) as {
    services: Record<string, Service>
    volumes: Record<string, unknown>
  }
}

promise(
  'T47',
  'All that the container of a team is built from comes with the package; it has the workspace and nothing else of the machine',
)
test('the container of a team runs `codemachine team`, and has the workspace and nothing else of the machine', async () => {
  const { services, volumes } = await readCompose()
  const { team, codemachine } = services
  expect([team?.entrypoint, codemachine?.entrypoint]).toEqual([['codemachine', 'team'], undefined])
  expect(team?.volumes).toEqual([`\${PWD:-.}:/workspace`, 'home:/home/node/.codemachine'])
  expect(Object.keys(volumes)).toEqual(['home', 'database', 'socket'])
  expect(team?.privileged).toBeUndefined()
  const { context = '', dockerfile = '' } = team?.build ?? {}
  await access(resolve(DOCKER, context, dockerfile))
})

test('the container of a fleet has PostgreSQL, and two workers that reach it by its socket alone', async () => {
  const { services } = await readCompose()
  const { postgres, worker } = services
  expect([postgres?.profiles, worker?.profiles, worker?.deploy?.replicas]).toEqual([['fleet'], ['fleet'], 2])
  expect(postgres?.command).toEqual(['-c', 'listen_addresses='])
  const socket = new URL(worker?.environment?.CODEMACHINE_QUEUE ?? '').searchParams.get('host')
  for (const service of [postgres, worker]) expect(service?.volumes).toContain(`socket:${socket}`)
  expect(worker?.volumes).not.toContain(`\${PWD:-.}:/workspace`)
  const [script = ''] = (postgres?.volumes ?? []).map(volume => /^(\.\/[^:]+):/.exec(volume)?.[1]).filter(Boolean)
  const made = await readFile(resolve(DOCKER, script ?? ''), 'utf8')
  // Else the workers' login has to make them, which it may not.
  for (const role of Object.keys(ROLES)) expect(made).toContain(`create role ${role};`)
})

promise('T47')
test('all that the container is built from comes with the package', async () => {
  const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
  const lines = (await readFile(join(DOCKER, 'Dockerfile'), 'utf8')).split('\n')
  const copied = lines.filter(line => line.startsWith('COPY ')).flatMap(line => line.split(/\s+/).slice(1, -1))
  expect(files).toContain('docker')
  // npm packs package.json whatever is said.
  expect(copied.filter(each => !['package.json', ...files].includes(each))).toEqual([])
  expect(copied.length).toBeGreaterThan(4)
  expect(lines.findLast(line => line.startsWith('USER '))).toBe('USER node')
})
