import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ShellEnd } from '../../src/core/shapes/shell.ts'
import { openSandboxTraces } from '../../src/workspace/sandbox-traces.ts'
import { openShellIn } from '../engines/codex/open-shell-in.ts'
import { makePlace } from '../support/place.ts'

const NAMES = ['.env', '.env.local', '.env.production', '.env.test', '.env.development']
const AT_ONCE = 4
const COMMANDS = 30

test('commands of two app-servers side by side never fail for files that are closed to them and missing', async () => {
  await using place = await makePlace('', { git: false })
  const unreadable = NAMES.map(name => join(place.directory, name))
  const record = join(place.home, 'traces.json')
  {
    await using traces = await openSandboxTraces([place.directory], record)
    await traces.layFiles(unreadable)
    await traces.keep()
    await using first = await openShellIn(place)
    await using second = await openShellIn(place)
    const command = {
      run: 'cat .env 2>/dev/null; ls .env.production',
      env: {},
      unreadable,
      timeoutMs: 60_000,
      signal: new AbortController().signal,
      mostCharacters: 1000,
    }
    const oneAfterTheOther = async (shell: typeof first) => {
      const ends: ShellEnd[] = []
      for (let n = 0; n < COMMANDS / AT_ONCE; n++) ends.push(await shell.shell.run(command))
      return ends
    }
    const ends = (
      await Promise.all(
        [first, second].flatMap(shell => Array.from({ length: AT_ONCE }, () => oneAfterTheOther(shell))),
      )
    ).flat()
    expect(ends.filter(end => end.kind !== 'exited' || end.exitCode !== 0)).toEqual([])
    expect(unreadable.every(path => traces.isLaid(path))).toBe(true)
  }
  expect(await readdir(place.directory)).toEqual([])
  expect(existsSync(record)).toBe(false)
})
