import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writableByAgents } from '../../src/platform/files.ts'
import { type EditedText, editText } from '../../src/platform/terminal.ts'

let folder: string
let temporary: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edit-text-'))
  temporary = join(folder, 'private')
  await mkdir(temporary)
})

afterEach(async () => {
  await rm(folder, { recursive: true, force: true })
})

/** An editor that is a shell script; `$1` is the file unless it was given arguments. */
async function editor(script: string, name = 'my editor'): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return path
}

async function edit(text: string, env: Record<string, string>, lent = { times: 0 }): Promise<EditedText> {
  const edited = await editText({
    text,
    env: { PATH: process.env.PATH ?? '', ...env },
    platform: process.platform,
    temporary,
    where: { workDirectory: [join(folder, 'work')], gitDirectories: [], elsewhere: [], temporary: [] },
    run: async edit => {
      lent.times += 1
      return await edit()
    },
  })
  expect(await readdir(temporary)).toEqual([])
  return edited
}

test('the text that the editor leaves comes back, without the newline that editors add', async () => {
  const lent = { times: 0 }
  const path = await editor('echo "and more" >> "$1"')
  expect(await edit('a line\n', { VISUAL: `"${path}"` }, lent)).toEqual({ kind: 'edited', text: 'a line\nand more\n' })
  expect(await edit('', { VISUAL: `"${path}"` })).toEqual({ kind: 'edited', text: 'and more' })
  expect(lent.times).toBe(1)
})

test('an editor that changes nothing, or only ends the last line, has changed nothing', async () => {
  expect(await edit('a\r\nb', { EDITOR: 'true' })).toEqual({ kind: 'unchanged' })
  expect(await edit('a', { EDITOR: `"${await editor('echo >> "$1"')}"` })).toEqual({ kind: 'unchanged' })
})

test('VISUAL comes before EDITOR, and one that is empty does not count', async () => {
  const path = await editor('echo "$0" > "$1"', 'ed')
  expect(await edit('', { VISUAL: path, EDITOR: 'false' })).toEqual({ kind: 'edited', text: path })
  expect(await edit('', { VISUAL: ' ', EDITOR: path })).toEqual({ kind: 'edited', text: path })
})

test('without a word about it, vi is used', async () => {
  await editor('echo "vi: $1" > "$1"', 'vi')
  const edited = await edit('', { PATH: `${folder}:/usr/bin:/bin` })
  expect(edited).toMatchObject({ kind: 'edited', text: expect.stringMatching(/^vi: .*\/PROMPT\.md$/) })
})

test('arguments and quotes in the variable are the shell’s, and the file is private', async () => {
  const path = await editor(
    'f="$3"; printf "%s|%s|" "$1" "$2" > "$f"; ls -l "$f" | cut -c1-10 >> "$f"; ls -ld "$(dirname "$f")" | cut -c1-10 >> "$f"',
  )
  const edited = await edit('', { EDITOR: `"${path}" --wait 'two words'` })
  expect(edited).toEqual({ kind: 'edited', text: '--wait|two words|-rw-------\ndrwx------' })
})

test('it knows for whom it was started, so that no search for what agents left ends it', async () => {
  const path = await editor('echo "$CODEMACHINE_FOR_PERSON" > "$1"')
  expect(await edit('', { EDITOR: `"${path}"` })).toEqual({ kind: 'edited', text: String(process.pid) })
})

test('an editor that an agent may have put there is not found by its name', async () => {
  const bin = join(folder, 'work/bin')
  await mkdir(bin, { recursive: true })
  await writeFile(join(bin, 'myed'), '#!/bin/sh\necho hacked > "$1"\n', { mode: 0o755 })
  const edited = await edit('', { EDITOR: 'myed', PATH: `${bin}:/usr/bin:/bin` })
  expect(edited).toMatchObject({ kind: 'failed', message: expect.stringContaining('was not found') })
})

test.each([
  ['is not there', 'no-such-editor --wait', 'The editor "no-such-editor --wait" was not found'],
  ['may not be run', '/dev/null', 'cannot be run'],
  ['fails', 'false', 'ended with exit code 1; the text is unchanged.'],
  ['is killed', `sh -c 'kill -9 $$'`, 'was '],
  ['leaves no file', 'rm', 'has left no file behind'],
  ['leaves a directory', `sh -c 'rm "$0"; mkdir "$0"'`, 'replaced the file by something else'],
  ['leaves a link', `sh -c 'ln -sf /etc/passwd "$0"'`, 'replaced the file by something else'],
  ['writes what is no UTF-8', `sh -c 'printf "\\377" > "$0"'`, 'is not UTF-8 text'],
  ['writes too much', `sh -c 'head -c 2000000 /dev/zero > "$0"'`, 'larger than 1 MiB'],
])('an editor that %s is told in a sentence', async (_, command, message) => {
  const edited = await edit('my text', { EDITOR: command })
  expect(edited).toMatchObject({ kind: 'failed', message: expect.stringContaining(message) })
  expect(JSON.stringify(edited)).toMatch(/[.]"}$/)
})

test('a place that cannot be written to is told in a sentence', async () => {
  const options = { env: {}, platform: process.platform, where: writableByAgents(folder, {}, []) }
  const place = join(folder, 'file')
  await writeFile(place, '')
  const edited = await editText({ ...options, text: 'x', temporary: place, run: edit => edit() })
  expect(edited).toMatchObject({ kind: 'failed', message: expect.stringContaining('could not be handed') })
  expect(await readFile(place, 'utf8')).toBe('')
})
