import { access, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { load, YAML11_SCHEMA } from 'js-yaml'
import { expect, test } from 'vitest'
import { promise } from '../support/promise.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const DOCKER = join(ROOT, 'docker')

interface Service {
  build: { context: string; dockerfile: string }
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
  expect(Object.keys(volumes)).toEqual(['home'])
  expect(team?.privileged).toBeUndefined()
  const { context = '', dockerfile = '' } = team?.build ?? {}
  await access(resolve(DOCKER, context, dockerfile))
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
