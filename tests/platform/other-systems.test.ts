import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { problemOfName } from '../../src/agents/agent.ts'
import { MARK_VARIABLE, readMarks } from '../../src/platform/end-processes.ts'
import { isFileName, isItself, isWithin, NOWHERE, replaceFile, writableByAgents } from '../../src/platform/files.ts'
import { answerAt, isAlive, isAnswered, lifeSign, readPs, startTimeOf } from '../../src/platform/processes.ts'
import {
  searchedFolders,
  searchPathOutside,
  shellLine,
  systemProgram,
  withOwnPath,
  withPersonPath,
} from '../../src/platform/run-process.ts'
import { shellWord } from '../../src/platform/shell-word.ts'
import { orphansOf, readProcesses } from '../../src/platform/windows-processes.ts'
import { isPlainPath } from '../../src/workspace/files/write-all.ts'
import { scopeFolder } from '../../src/workspace/memory/memory-paths.ts'
import { isWorktreeName } from '../../src/workspace/worktree/worktree.ts'
import { promise } from '../support/promise.ts'

promise('B123')
describe('whether a path lies in a folder goes by the names of the platform', () => {
  test.each([
    ['win32', 'C:\\Users\\me\\Work', 'c:\\users\\ME\\work\\bin', true],
    ['win32', 'C:\\Users\\me\\Work', 'C:/Users/me/Work/bin', true],
    ['win32', 'C:\\', 'C:\\Users', true],
    ['win32', 'C:\\work', 'C:\\workshop', false],

    ['darwin', '/Users/me/Möwe', '/users/me/mo\u0308we/bin', true],
    ['darwin', '/work', '/workshop', false],
    ['linux', '/home/me/Work', '/home/me/work/bin', false],
    ['linux', '/home/me/m\u00f6', '/home/me/mo\u0308/bin', false],
    ['linux', '/home/a\\b', '/home/a\\b/bin', true],
  ] as const)('on %s, %s and %s: %s', (platform, folder, path, expected) => {
    expect(isWithin(folder, path, platform)).toBe(expected)
  })
})

test('a real path in other letters leads nowhere else where the system ignores case', () => {
  const asked = '/w/.codemachine/plan'
  const real = '/w/.CODEMACHINE/plan'
  expect((['darwin', 'win32', 'linux'] as const).map(platform => isItself(asked, real, platform))).toEqual([
    true,
    true,
    false,
  ])
  expect(isItself(asked, '/w/elsewhere/plan', 'darwin')).toBe(false)
  expect(isItself(asked, null, 'darwin')).toBe(false)
})

test('agents can write in each temporary directory that the environment names', () => {
  const { temporary } = writableByAgents('/work', { TMPDIR: '/a', TEMP: '/b', TMP: '' }, [])
  expect(temporary).toEqual(expect.arrayContaining(['/tmp', '/a', '/b']))
  expect(temporary).not.toContain('')
})

promise(
  'B123',
  'On Windows no program is taken from the current directory by its bare name, and paths are compared by the names of the platform (as functions only; never run there)',
)
describe('on Windows', () => {
  test('its own programs are started by their absolute paths, so that none of the work directory is taken for one', () => {
    const env = { systemroot: 'D:\\Windows' }
    expect(systemProgram('taskkill.exe', env)).toBe('D:\\Windows\\System32\\taskkill.exe')
    expect(systemProgram('explorer.exe', env)).toBe('D:\\Windows\\explorer.exe')
    expect(systemProgram('cmd.exe', {})).toBe('C:\\Windows\\System32\\cmd.exe')
  })

  test('a PATH is cut at semicolons, and a folder in which agents worked taken out of it', () => {
    const Path = 'C:\\Work\\node_modules\\.bin;C:\\Program Files\\Git\\cmd;tools'
    const env = withOwnPath({ Path }, ['c:\\work'], 'win32')
    expect(env.Path).toBe('C:\\Program Files\\Git\\cmd')
    expect(searchedFolders(env, 'win32')).toEqual([
      { folder: 'C:\\Work\\node_modules\\.bin', isOwn: false },
      { folder: 'C:\\Program Files\\Git\\cmd', isOwn: true },
      { folder: 'tools', isOwn: true },
    ])
    expect(withPersonPath(env)).toEqual({ Path })
    expect(searchPathOutside('tools', NOWHERE, 'win32')).not.toContain('tools')
  })

  test('programs are not taken from the current directory, but commands of a person and of agents are as they know it', () => {
    const name = 'NoDefaultCurrentDirectoryInExePath'
    expect(withPersonPath({ [name]: 'codemachine', A: '1' })).toEqual({ A: '1' })
    expect(withPersonPath({ [name]: '1' })).toEqual({ [name]: '1' })
  })

  test.each([
    ['npm test', 'as-one'],
    ['npm run "my test" && echo "a & b" | find "a"', 'as-one'],
    ['node -e "console.log(\'%PATH%\', 1 ^ 2)" > out.txt', 'apart'],
    ['echo !x! (1) <in "unclosed', 'apart'],
  ] as const)('the line of a gate reaches cmd.exe as it was typed: %s', (line, streams) => {
    const { command, env } = shellLine(line, 'win32', streams, {})
    const cmd = 'C:\\Windows\\System32\\cmd.exe'
    // No argument has a quote or a space, so nothing is put around it or before it.
    expect(command.filter(each => /["\s]/.test(each))).toEqual([])
    const [, name = ''] = /^%(\w+)%$/.exec(command.at(-1) ?? '') ?? []
    const inner = afterFirstRead(env[name] ?? '')
    const head = `${cmd} /d /v:off /s /c "`
    expect(inner.slice(0, head.length)).toBe(head)
    expect(inner.slice(head.length)).toBe(`(${line})${streams === 'as-one' ? ' 2>&1' : ''}"`)
  })

  test('a file that somebody reads is replaced once they have, within about a second', async () => {
    const refusing = (times: number, code: string) => {
      let [tries, waited] = [0, 0]
      const rename = async () => {
        tries += 1
        if (tries <= times) throw Object.assign(new Error(code), { code })
      }
      const wait = async (ms: number) => {
        waited += ms
      }
      const replaced = (platform: NodeJS.Platform) =>
        replaceFile('a.tmp', 'a', { platform, rename, wait }).then(
          () => ({ tries, waited }),
          (error: Error) => ({ tries, waited, error: error.message }),
        )
      return replaced
    }
    expect(await refusing(3, 'EPERM')('win32')).toEqual({ tries: 4, waited: 35 })
    const never = await refusing(100, 'EBUSY')('win32')
    expect(never).toMatchObject({ error: 'EBUSY' })
    expect(never.waited).toBeGreaterThan(900)
    expect(await refusing(1, 'ENOSPC')('win32')).toEqual({ tries: 1, waited: 0, error: 'ENOSPC' })
    expect(await refusing(1, 'EPERM')('linux')).toEqual({ tries: 1, waited: 0, error: 'EPERM' })
  })

  test.each([
    ['npm run lint\nnpm test'],
    ['npm run lint\r\nnpm test'],
    [`echo ${'x'.repeat(8_200)}`],
    [`echo ${'&'.repeat(4_100)}`],
  ])('a line of a gate that cmd.exe would run only in part fails, and says why', line => {
    const { env } = shellLine(line, 'win32', 'as-one', {})
    const inner = afterFirstRead(Object.values(env).join())
    expect(inner).toMatch(/"\(echo codemachine: cmd\.exe runs only one line [^&|<>%^]*& exit 1\)"$/)
    expect(inner.length).toBeLessThan(8192)
  })

  /** What PowerShell hands on of a quoted word: the backslashes before a quote and at the end are twice as many. */
  const forProgram = (text: string) => text.replace(/(\\+)(?="|$)/g, '$1$1')

  test('a word of a hint is that word for cmd.exe and for PowerShell, whatever stands in it', () => {
    const characters = [...'ab C:/\\\\"\'%^&|<>()!;,=@#-.*~', '\u2018', '\u2019']
    const word = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map(each => each.join(''))
    fc.assert(
      fc.property(word, text => {
        const typed = shellWord(text, 'win32')
        expect(readByProgram(readByCmd(typed))).toEqual([text])
        expect(readByPowerShell(typed)).toBe(/^["']/.test(typed) ? forProgram(text) : text)
      }),
    )
  })

  test('a word with a variable of PowerShell is that word there; a line break is a space', () => {
    const characters = [...'a \\"\'$`%', '\u2018', '\u201a', '\u201c', '\u201e']
    const word = fc.array(fc.constantFrom(...characters), { maxLength: 12 }).map(each => `$${each.join('')}`)
    fc.assert(
      fc.property(word, text => {
        expect(readByPowerShell(shellWord(text, 'win32'))).toBe(forProgram(text))
      }),
    )
    expect(shellWord('a\r\n\tb', 'win32')).toBe('"a b"')
  })

  test.each(['con', 'NUL.txt', 'aux .md', 'com1', 'LPT³.a', 'a.', 'a ', 'a:b', 'a?', 'CONIN$'])(
    'no file, folder or worktree is named %j',
    name => {
      expect([isFileName(name, 'win32'), isFileName(name, 'linux')]).toEqual([false, true])
      expect(isWorktreeName(name, 'win32')).toBe(false)
      expect(isPlainPath(`docs/${name}/b.md`, 'win32')).toBe(false)
    },
  )

  test('an agent is not named by a device, and a step that is has another folder', () => {
    expect(problemOfName('con', [], 'win32')).toMatch(/^"con" is the name of a device .+ another name\.$/)
    expect(problemOfName('console', [], 'win32')).toBeNull()
    expect(problemOfName('con', [], 'linux')).toBeNull()
    const place = { folder: '/w/1', kb: '/w/kb', lastGood: '/r/last' }
    const mains = (['aux', 'audit'] as const).map(name => scopeFolder(place, name, 'win32').main)
    expect(mains).toEqual(['/w/1/steps/_aux/MAIN.md', '/w/1/steps/audit/MAIN.md'])
    expect(scopeFolder(place, 'aux', 'win32').lastGood).toBe('/r/last/steps/_aux')
    expect(scopeFolder(place, 'aux', 'linux').main).toBe('/w/1/steps/aux/MAIN.md')
  })

  test('names such as console.ts and com10 are names as on other systems', () => {
    for (const name of ['console.ts', 'com10', 'auxiliary', '.env', 'a.b', 'nul-device'])
      expect(isFileName(name, 'win32')).toBe(true)
    for (const name of ['', '.', '..', 'a/b', 'a\0']) expect(isFileName(name, 'linux')).toBe(false)
  })

  test('a path in a hint is quoted for cmd.exe and PowerShell', () => {
    expect(shellWord('C:\\Users\\me\\work', 'win32')).toBe('C:\\Users\\me\\work')
    expect(shellWord("C:\\it's mine", 'win32')).toBe(`"C:\\it's mine"`)
    expect(shellWord('', 'win32')).toBe('""')
    expect(shellWord('C:\\my work\\', 'win32')).toBe('"C:\\my work\\\\"')
    expect(shellWord("it's mine", 'linux')).toBe(`'it'\\''s mine'`)
  })

  test('a process says that it lives at a pipe of its own', () => {
    expect(lifeSign('1-2', 'win32')).toBe('\\\\.\\pipe\\codemachine-1-2')
    expect(lifeSign('1-2', 'linux')).toBeNull()
  })
})

test('who answers at a socket is known to live, until it lets go of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'answers-'))
  try {
    const address = join(folder, 'sign')
    expect(await isAnswered(address)).toBe(false)
    const answering = await answerAt(address)
    expect(await isAnswered(address)).toBe(true)
    expect(await answerAt(address)).toBeNull()
    await answering?.[Symbol.asyncDispose]()
    expect(await isAnswered(address)).toBe(false)
  } finally {
    await rm(folder, { recursive: true })
  }
})

describe('the processes that a killed codemachine left on Windows', () => {
  const at = Date.parse('2026-11-29T01:00:00Z')
  const codex = 'C:\\codex\\codex.exe app-server'
  /** Pid, parent, minutes after the start, command line. */
  type Row = [number, number, number | null, string | null]
  const listed = (...rows: Row[]) =>
    rows.map(([ProcessId, ParentProcessId, minutes, CommandLine]) => ({
      ProcessId,
      ParentProcessId,
      CommandLine,
      At: minutes === null ? null : new Date(at + minutes * 60_000).toISOString().replace('Z', '4567Z'),
    }))
  const leftSince = (bootedAt: number, ...rows: Row[]) =>
    orphansOf({ pid: 100, at }, readProcesses(`\uFEFF${JSON.stringify(listed(...rows))}\r\n`), {
      self: 900,
      bootedAt,
    }).map(({ pid }) => pid)
  const left = (...rows: Row[]) => leftSince(at - 60_000, ...rows)

  promise('R8')
  test('are codex and all that it started, and nothing that is older than its parent', () => {
    const system: Row[] = [
      [0, 0, null, null],
      [4, 0, -600, null],
    ]
    const ours: Row[] = [
      [101, 100, 1, codex],
      [102, 101, 2, 'cmd /c npm test'],
      [103, 102, 3, 'node'],
    ]
    expect(left(...system, ...ours, [104, 101, 0.5, 'older'], [105, 100, -1, codex])).toEqual([101, 102, 103])
  })

  test('are none of another process with its pid, whether that lives or has ended', () => {
    expect(left([100, 4, 60, 'other'], [101, 100, 59, codex], [102, 100, 61, codex])).toEqual([101])
    expect(left([100, 4, null, 'other'], [102, 100, 61, codex])).toEqual([])
    expect(left([102, 100, 61, 'C:\\Windows\\notepad.exe'])).toEqual([])
  })

  test('are none after the system has started again, where its pid is another process', () => {
    expect(leftSince(at + 1, [101, 100, 1, codex])).toEqual([])
    expect(leftSince(at, [101, 100, 1, codex])).toEqual([101])
  })

  test('are none of a codex that this process runs in', () => {
    expect(left([101, 100, 1, codex], [102, 101, 2, 'pwsh'], [900, 102, 3, 'node'], [103, 101, 2, 'node'])).toEqual([])
  })

  test('are read from a list of one, of none, and from anything else', () => {
    const [only] = listed([101, 100, 1, codex])
    expect(readProcesses(JSON.stringify(only))).toEqual([
      { pid: 101, parent: 100, createdAt: at + 60_000, command: codex },
    ])
    for (const text of ['', 'Get-CimInstance : Access denied', '[{"ProcessId":"1"}]', 'null', '[1]'])
      expect(readProcesses(text)).toEqual([])
  })
})

describe('on macOS', () => {
  test('what ps says of a process is when it was started, and nothing of a zombie', () => {
    expect(readPs('Ss   Sun Nov 29 00:56:27 2026')).toEqual({ isZombie: false, startTime: '2026-11-29T00:56:27.000Z' })
    expect(readPs(' Z+   Sun Nov  1 00:56:27 2026 ')).toEqual({ isZombie: true, startTime: null })
    expect(readPs('')).toBeNull()
  })

  test('the marks that ps prints are those of processes that have one, however long their line', () => {
    const long = 'x'.repeat(100_000)
    const printed = [
      '    1 /sbin/launchd',
      '  501 /opt/codex/codex app-server HOME=/Users/me CODEMACHINE_MARK=k/7/2026-11-29T00:56:27.000Z/1 LANG=de_DE.UTF-8',
      `12345 node -e ${long} CODEMACHINE_MARK=k/7/-/2`,
      '12346 (node)',
      '12347 <defunct>',
      '12348 sh -c echo CODEMACHINE_MARK=fake PATH=/bin CODEMACHINE_MARK=k/7/-/3',
      '12349 node NOT_CODEMACHINE_MARK=k/7/-/4',
      '',
    ]
    const marks = readMarks(printed.join('\n'), MARK_VARIABLE)
    expect(marks.map(({ pid, value }) => `${pid} ${value}`)).toEqual([
      '501 k/7/2026-11-29T00:56:27.000Z/1',
      '12345 k/7/-/2',
      '12348 k/7/-/3',
    ])
    expect(marks.every(({ command }) => command.length <= 200)).toBe(true)
  })

  test.skipIf(process.platform === 'win32')('a process that lives is known by its start, as ps has it', async () => {
    expect(await isAlive(process.pid, 'darwin')).toBe(true)
    expect(await startTimeOf(process.pid, 'darwin')).toMatch(/^\d{4}-\d\d-\d\dT/)
  })
})

/** The word as cmd.exe hands it on: a quote begins or ends a text; outside, these characters mean something to it. */
function readByCmd(typed: string): string {
  let isText = false
  for (const char of typed) {
    if (char === '"') isText = !isText
    else if (!isText && /[&|<>()^\s;,=]/.test(char)) throw new Error(`cmd.exe reads ${char} itself in ${typed}`)
  }
  return typed
}

/** The arguments that a Windows program sees: in quotes, two quotes are one; backslashes count before a quote alone. */
function readByProgram(line: string): string[] {
  const found: string[] = []
  let [word, isText, isThere] = ['', false, false]
  for (let at = 0; at < line.length; at++) {
    const [slashes = ''] = /^\\*/.exec(line.slice(at)) ?? []
    const next = line[at + slashes.length]
    if (next === '"') {
      word += '\\'.repeat(slashes.length >> 1)
      at += slashes.length
      isThere = true
      if (slashes.length % 2 === 1) word += '"'
      else if (isText && line[at + 1] === '"') {
        word += '"'
        at++
      } else isText = !isText
    } else if (slashes !== '') {
      word += slashes
      isThere = true
      at += slashes.length - 1
    } else if (next === ' ' && !isText) {
      if (isThere) found.push(word)
      word = ''
      isThere = false
    } else {
      word += next
      isThere = true
    }
  }
  return isThere ? [...found, word] : found
}

/** The one word that PowerShell makes of a text: each form of a quote begins and ends it, and a doubled one stands for itself. */
function readByPowerShell(typed: string): string {
  const single = /['\u2018-\u201b]/
  const double = /["\u201c-\u201e]/
  const quote = [single, double].find(each => each.test(typed[0] ?? ''))
  if (quote === undefined) {
    if (/[\s'"$`&|<>(){};,@#%^!=*~\u2018-\u201e]/.test(typed) || /^-.*[.:]/.test(typed))
      throw new Error(`No plain word: ${typed}`)
    return typed
  }
  let read = ''
  for (let at = 1; at < typed.length - 1; at++) {
    const char = typed[at] ?? ''
    if (quote === double && /[$`]/.test(char)) throw new Error(`PowerShell reads ${char} itself in ${typed}`)
    if (quote.test(char) && !quote.test(typed[++at] ?? '')) throw new Error(`The text ends early in ${typed}`)
    read += char
  }
  if (!quote.test(typed.at(-1) ?? '') || typed.length < 2) throw new Error(`The text does not end in ${typed}`)
  return read
}

/** What the first cmd.exe makes of a text: a caret takes what the next character means to it, and a quote would begin a text. */
function afterFirstRead(text: string): string {
  let read = ''
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (char === '^') read += text[++at] ?? ''
    else if (/["&|<>()]/.test(char)) throw new Error(`The first one reads ${char} itself, at ${at} of ${text}`)
    else read += char
  }
  return read
}
