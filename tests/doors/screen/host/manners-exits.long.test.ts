import { chmod, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message, reply, shell } from '../../../../src/demo/model/reply.ts'
import { type Emulator, startInEmulator } from '../../../support/emulator.ts'
import { killIfAlive } from '../../../support/kill-if-alive.ts'
import { openRealScene, type RealScene } from '../../../support/real-scene.ts'
import { hold } from '../../../support/scripted-model.ts'
import { describe, test } from '../../../support/side-by-side.ts'
import { appServersOf, gate, leavesAsFound, personSettings, rowsWith, started } from './manners.ts'

/** A session that works until the scene is over. */
async function working(
  env: Record<string, string> = {},
): Promise<AsyncDisposable & { scene: RealScene; seen: Emulator }> {
  const { opened, open } = gate()
  const scene = await openRealScene([
    [reply(message('I am at it.'), hold(opened), shell('true'))],
    [reply(message('Again.'))],
  ])
  const seen = startInEmulator(scene.place, ['Make it'], { env })
  await seen.until('I am at it.')
  await seen.until(/› *\n─+\n.*\? keys/)
  return {
    scene,
    seen,
    async [Symbol.asyncDispose]() {
      open()
      await seen[Symbol.asyncDispose]()
      await scene[Symbol.asyncDispose]()
    },
  }
}

/** Nothing of what changed in place is left. */
function leavesNoFrame(seen: Emulator): void {
  expect(rowsWith(seen.all(), /^›|\? keys| · Make it/), seen.all().join('\n')).toEqual([])
}

describe('leaving the start screen', () => {
  test.each<[string, (seen: Emulator) => Promise<void> | void]>([
    ['/exit', seen => seen.type('/exit\r')],
    [
      'Ctrl+C twice',
      async seen => {
        seen.press('ctrl+c')
        await seen.until('Ctrl+C again leaves')
        seen.press('ctrl+c')
      },
    ],
  ])('%s leaves the terminal as it was', async (_, leave) => {
    await using scene = await openRealScene([])
    await using seen = startInEmulator(scene.place, [])
    await started(seen)
    expect(seen.modes().bracketedPaste).toBe(true)
    await leave(seen)
    expect(await leavesAsFound(seen)).toBe(0)
    leavesNoFrame(seen)
  })
})

describe('leaving a session', () => {
  test.each<[string, number, (seen: Emulator) => Promise<void> | void]>([
    [
      '/exit and Enter',
      130,
      async seen => {
        seen.type('/exit\r')
        await seen.until('Leave now')
        seen.press('enter')
      },
    ],
    [
      'Ctrl+C twice',
      130,
      async seen => {
        seen.press('ctrl+c')
        await seen.until('modify the plan')
        seen.press('ctrl+c')
      },
    ],
    ['SIGTERM', 143, seen => seen.kill('SIGTERM')],
    ['SIGINT from elsewhere', 130, seen => seen.kill('SIGINT')],
    [
      'SIGTERM while the logs are open',
      143,
      async seen => {
        seen.press('ctrl+e')
        await seen.until(() => seen.modes().alternateScreen)
        await seen.until('I am at it.')
        await seen.kill('SIGTERM')
      },
    ],
  ])('%s leaves the terminal as it was, and says how to go on', async (_, exitCode, leave) => {
    await using place = await working()
    const { seen } = place
    await leave(seen)
    expect(await leavesAsFound(seen)).toBe(exitCode)
    leavesNoFrame(seen)
    expect(seen.all().join('\n')).toContain('codemachine resume')
  })

  test('a terminal that is gone ends the session so that it can be resumed', async () => {
    await using place = await working()
    const { scene, seen } = place
    seen.hangUp()
    await seen.ended
    expect(scene.recorded('journal.ndjson')).toMatch(/"session-ended".*"by":"SIGHUP"/)
    expect((await scene.run('status')).stdout).toMatch(/interrupted/)
  })

  test('a codex that is killed does not take the screen with it', async () => {
    await using place = await working()
    const { scene, seen } = place
    const servers = appServersOf(scene.place)
    expect(servers).not.toEqual([])
    for (const pid of servers) await killIfAlive(pid)
    await seen.untilInAll(/round 2/)
    await seen.until(/› *\n─+\n.*\? keys/)
    seen.press('ctrl+d')
    await seen.until('Leave now')
    seen.press('enter')
    await leavesAsFound(seen)
    leavesNoFrame(seen)
  })
})

test('settings that cannot be read end it with a sentence, before anything is drawn', async () => {
  await using scene = await openRealScene([])
  await personSettings(scene.place, '[screen]\ntheme = "loud"\n')
  await using seen = startInEmulator(scene.place, [])
  expect(await leavesAsFound(seen)).toBe(2)
  expect(seen.all().join(' ')).toMatch(/config\.toml.*theme/)
})

test('records that go away while it works do not cost the terminal', async () => {
  await using place = await working()
  const { scene, seen } = place
  const records = scene.records()
  // At once: what is removed piece by piece would be written into meanwhile.
  await rename(records, join(scene.place.root, 'taken away'))
  await writeFile(records, 'not a folder')
  seen.type('and more')
  seen.press('tab')
  await seen.untilInAll(/ENOTDIR|not a folder|not a directory|cannot be/i)
  await seen.kill('SIGTERM')
  await leavesAsFound(seen)
  leavesNoFrame(seen)
})

test('a bug of ours ends it with the terminal as it was, and the session can be resumed', async () => {
  const bug = "data:text/javascript,process.on('SIGUSR2', () => { throw new Error('a bug of ours') })"
  await using place = await working({ NODE_OPTIONS: `--import="${bug}"` })
  const { scene, seen } = place
  await seen.kill('SIGUSR2')
  expect(await leavesAsFound(seen)).not.toBe(0)
  expect(seen.all().join('\n')).toContain('a bug of ours')
  expect(scene.recorded('journal.ndjson')).toContain('"session-ended"')
})

test('Ctrl+Z gives the shell its terminal, and fg brings the screen back', async () => {
  await using place = await working()
  const { seen } = place
  seen.type('a draft')
  await seen.until('› a draft')
  const stopped = seen.stopped()
  seen.press('ctrl+z')
  await stopped
  expect(seen.modes().changed).toEqual([])
  expect(seen.modes().kitty).toBe(0)
  expect(await seen.stty()).toBe(seen.sttyAtStart())
  seen.resize(70, 20)
  seen.foreground()
  await seen.until(rows => rowsWith(rows, '› a draft').length === 1)
  seen.type('ed')
  await seen.until('› a drafted')
  await seen.until(rows => rowsWith(rows, / · Make it ·/).length === 1)
  seen.press('ctrl+c')
  await seen.until(rows => rowsWith(rows, '› a drafted').length === 0)
  seen.press('ctrl+c')
  await seen.until('modify the plan')
  seen.press('ctrl+c')
  expect(await leavesAsFound(seen)).toBe(130)
  leavesNoFrame(seen)
})

test('an editor gets the terminal and gives back a text; one that fails leaves the draft as it was', async () => {
  await using scene = await openRealScene([])
  const { directory, root } = scene.place
  const editor = join(root, 'editor')
  const write = async (body: string) => {
    await writeFile(editor, `#!/bin/sh\n${body}\n`)
    await chmod(editor, 0o755)
  }
  await write(
    `stty -a | grep -q ' icanon' && printf '\\033[?1049h\\033[2JIn the editor' && read -r line && read -r line && read -r line && printf '\\033[?1049l' && echo "and $line" >> "$1"`,
  )
  await using seen = startInEmulator(scene.place, [], { env: { VISUAL: editor, EDITOR: undefined }, cwd: directory })
  await started(seen)
  seen.type('typed')
  await seen.until('› typed')
  seen.press('ctrl+g')
  await seen.until('In the editor')
  expect(seen.modes().kitty).toBe(0)
  for (const line of ['lost', 'lost too', 'edited']) {
    seen.type(`${line}\n`)
    await seen.until(line)
  }
  await seen.until('and edited')
  expect(rowsWith(seen.screen(), '? keys').length + rowsWith(seen.screen(), 'Enter starts it').length).toBe(1)

  await write(`echo 'A last word of the editor'; exit 3`)
  seen.press('ctrl+g')
  await seen.until(/editor.*3|exit code 3|failed/)
  await seen.until(rows => rowsWith(rows, 'and edited').length === 1)
  seen.type('!')
  await seen.until('and edited!')
  seen.press('ctrl+u')
  seen.press('ctrl+c')
  await seen.until('Ctrl+C again leaves')
  seen.press('ctrl+c')
  expect(await leavesAsFound(seen)).toBe(0)
})
