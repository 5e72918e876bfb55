import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { codemachineHere } from '../../support/in-process.ts'
import { makePlace } from '../../support/place.ts'

test('settings schema lists the files of editors with the places of their schemas, and prints each schema', async () => {
  await using place = await makePlace('', { git: false })
  const list = await codemachineHere(place, ['settings', 'schema', '--json'])
  const schemas: { file: string; what: string; path: string; address: string }[] = JSON.parse(list.stdout)
  expect(schemas.map(({ file }) => file)).toEqual([
    'codemachine.toml',
    'config.toml',
    'workflow',
    'night.toml',
    'tasks.json',
  ])
  const { stdout: lines } = await codemachineHere(place, ['settings', 'schema'])
  for (const { file, what, path, address } of schemas) {
    expect(lines).toMatch(new RegExp(`^${file} +${what.replaceAll('*', '\\*')} +${path}$`, 'm'))
    const { stdout, exitCode } = await codemachineHere(place, ['settings', 'schema', file])
    expect((await codemachineHere(place, ['settings', 'schema', '--file', file])).stdout).toBe(stdout)
    expect({ schema: JSON.parse(stdout), exitCode }).toEqual({
      schema: JSON.parse(readFileSync(path, 'utf8')),
      exitCode: 0,
    })
    expect(JSON.parse(stdout)).toMatchObject({ $schema: 'http://json-schema.org/draft-07/schema#', $id: address })
    expect(lines).toContain(address.slice(0, -basename(path).length))
  }
  for (const args of [['package.json'], ['--file', 'package.json']]) {
    const wrong = await codemachineHere(place, ['settings', 'schema', ...args])
    expect(wrong.exitCode).toBe(2)
    expect(wrong.stderr).toContain('cannot be "package.json"; use codemachine.toml, config.toml, workflow')
  }
})
