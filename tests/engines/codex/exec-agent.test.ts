import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import {
  type ExecAgentOptions,
  ExecOutput,
  type ExecRequest,
  execArguments,
  fitsAsArgument,
  runExecAgent,
} from '../../../src/engines/codex/exec/exec-agent.ts'
import { capabilitiesOf } from '../../../src/engines/codex/find-codex.ts'

const REQUEST = 'User Request:\nMake it\nblue'

function outputOf(text: string): { shown: string[]; reason: string | null } {
  const shown: string[] = []
  const output = new ExecOutput(REQUEST, line => shown.push(line))
  for (const line of text.split('\n')) output.push(line)
  return { shown, reason: output.reason() }
}

test('what codex shows before the end of the request is not shown, and all that comes after it is', () => {
  const instructions = 'You are it.\nUser Request:\nMake it\nred\nError: this is an example'
  const text = `OpenAI Codex v0.169.0\n--------\nmodel: x\n--------\nuser\n${instructions}\n\n${REQUEST}\ncodex\nUser Request:\nMake it\nblue`
  expect(outputOf(text)).toEqual({ shown: ['codex', 'User Request:', 'Make it', 'blue'], reason: null })
})

test('a request with line ends of Windows is known again', () => {
  const shown: string[] = []
  const output = new ExecOutput('User Request:\nMake it\r\nblue\r', line => shown.push(line))
  for (const line of ['User Request:', 'Make it', 'blue', 'I look.']) output.push(line)
  expect(shown).toEqual(['I look.'])
})

test('a request of one line that the instructions hold too begins to be shown at its first whole copy', () => {
  const shown: string[] = []
  const output = new ExecOutput('a\na\nb', line => shown.push(line))
  for (const line of ['a', 'a', 'a', 'b', 'c']) output.push(line)
  expect(shown).toEqual(['c'])
})

test.each([
  [`user\n${REQUEST}\nERROR: Reconnecting... 1/5\nERROR: {"error":{"message":"no such model"}}`, 'no such model'],
  [`user\n${REQUEST}\nERROR: {"broken`, '{"broken'],
  [
    'Error loading config.toml:\n/h/config.toml:24:6: unclosed array, expected `]`\n   |\n24 | x = [',
    'Error loading config.toml: /h/config.toml:24:6: unclosed array, expected `]`',
  ],
  [
    'Error: No such file or directory (os error 2)\n\n\nStack backtrace:\n   0: <unknown>',
    'Error: No such file or directory (os error 2)',
  ],
  [`user\nERROR: from the instructions\n${REQUEST}\nexec\nError: from a command`, null],
])('why codex failed is taken from its own words: %j', (text, reason) => {
  expect(outputOf(text).reason).toBe(reason)
})

const request: ExecRequest = {
  agent: { name: 'frontend-dev', model: 'gpt-"9"', modelReasoningEffort: 'medium' },
  hasProfile: true,
  directory: '/a.b/work',
  sandbox: { mode: 'workspace-write', network: false, writable: [] },
  overrides: ['model_verbosity=low'],
  forCommands: { GIT_DIR: null },
  shellPolicy: { exclude: ['SECRET'] },
  lastMessage: '/r/last',
  prompt: '--- a prompt',
}
const NEWEST = capabilitiesOf('0.169.0')

test('codex is told the profile, the sandbox, what commands are not to see, and the prompt as the last thing', () => {
  expect(execArguments(request, NEWEST).join(' ')).toBe(
    'exec --profile frontend-dev --skip-git-repo-check --sandbox workspace-write' +
      ' -c model="gpt-\\"9\\"" -c model_reasoning_effort="medium"' +
      ' -c sandbox_workspace_write.network_access=false -c shell_environment_policy.exclude=["SECRET", "GIT_DIR"]' +
      ' -c model_verbosity=low --color never --output-last-message /r/last -C /a.b/work -- --- a prompt',
  )
})

test('where no profile can be read, model and effort are told by themselves', () => {
  const args = execArguments({ ...request, hasProfile: false, prompt: null }, NEWEST)
  expect(args).not.toContain('--profile')
  expect(args).toEqual(expect.arrayContaining(['model="gpt-\\"9\\""', 'model_reasoning_effort="medium"']))
  expect(args.at(-1)).toBe('-')
})

test('what profile another call may have written meanwhile, model and effort are told beside it, in a table’s own place', () => {
  expect(execArguments(request, capabilitiesOf('0.133.0'))).toEqual(
    expect.arrayContaining([
      'profiles.frontend-dev.model="gpt-\\"9\\""',
      'profiles.frontend-dev.model_reasoning_effort="medium"',
    ]),
  )
})

test.each<[NodeJS.Platform, string, string[], boolean]>([
  ['linux', 'ä'.repeat(50_000), [], true],
  ['linux', 'ä'.repeat(50_001), [], false],
  ['win32', 'x'.repeat(31_000), [], true],
  ['win32', 'x'.repeat(31_000), ['y'.repeat(1_000)], false],
  ['win32', '"'.repeat(16_000), [], false],
  ['linux', 'a\0b', [], false],
])('on %s a prompt is an argument only where it fits: %.5s', (platform, prompt, others, fits) => {
  expect(fitsAsArgument(prompt, others, platform)).toBe(fits)
})

test('without a sandbox codex is told so in both ways', () => {
  const args = execArguments(
    { ...request, sandbox: { mode: 'danger-full-access', network: true, writable: [] } },
    NEWEST,
  )
  expect(args.slice(4, 7)).toEqual(['--sandbox', 'danger-full-access', '--dangerously-bypass-approvals-and-sandbox'])
})

test.each([
  ['0.120.0', 'trusted'],
  ['0.155.0', 'untrusted'],
])('codex %s is kept from writing into config.toml that the directory is trusted', (version, level) => {
  expect(execArguments(request, capabilitiesOf(version))).toContain(`projects={"/a.b/work"={trust_level="${level}"}}`)
})

/** A codex that is this shell script, in a folder of its own. */
async function makeCodex(script: string) {
  const folder = await mkdtemp(join(tmpdir(), 'codemachine-exec-'))
  const path = join(folder, 'codex')
  const lastMessage = join(folder, 'last')
  await writeFile(path, `#!/bin/sh\n${script.replaceAll('$LAST', lastMessage)}\n`)
  await chmod(path, 0o700)
  const logged: string[] = []
  return {
    logged,
    run: (more: Pick<ExecAgentOptions, 'signal' | 'onLine'> & Partial<ExecAgentOptions>) =>
      runExecAgent({
        ...request,
        directory: folder,
        binary: { path, version: '0.169.0' },
        env: { PATH: process.env.PATH },
        key: 'work-1',
        owner: { pid: process.pid, startTime: null },
        platform: process.platform,
        clock: systemClock,
        endMs: 5_000,
        silenceMs: 60_000,
        log: line => void logged.push(line),
        lastMessage,
        prompt: 'Go.',
        promptEnd: 'Go.',
        ...more,
      }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

test('an agent that has come to its end when it is to be ended has done its task', async () => {
  const script = `trap 'printf "All done." > "$LAST"; exit 0' INT; echo Go. >&2; echo ready >&2; while :; do sleep 0.05; done`
  await using codex = await makeCodex(script)
  const ending = new AbortController()
  const end = await codex.run({ signal: ending.signal, onLine: () => ending.abort('SIGTERM') })
  expect(end).toEqual({ kind: 'completed', result: 'All done.' })
})

test('a codex that cannot be killed is waited for no longer than can be borne, and said to be left behind', async () => {
  await using codex = await makeCodex('echo Go. >&2; echo "$$" >&2; exec sleep 300')
  const ending = new AbortController()
  let pid = 0
  const onLine = (line: string) => {
    pid ||= Number(line)
    ending.abort('SIGTERM')
  }
  const hasty: Clock = { ...systemClock, wait: (ms, signal) => systemClock.wait(ms > 60_000 ? ms : ms / 100, signal) }
  try {
    // What Windows kills by is not there on other systems, so that nothing of it reaches this codex.
    const end = await codex.run({ platform: 'win32', clock: hasty, signal: ending.signal, onLine })
    expect(end).toEqual({ kind: 'terminated' })
    expect(codex.logged).toEqual([`codex (${pid}) has not ended 5 s after it was killed; it is left behind.`])
  } finally {
    if (pid > 0) process.kill(pid, 'SIGKILL')
  }
})
