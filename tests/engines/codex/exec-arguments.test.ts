import { expect, test } from 'vitest'
import type { ThreadSpec } from '../../../src/core/engine.ts'
import type { SandboxChoice } from '../../../src/core/shapes/sandbox.ts'
import { threadTerms } from '../../../src/engines/codex/sandbox.ts'
import { type ExecTurn, execCommand } from '../../../src/engines/exec/exec-arguments.ts'
import { fitsAsArgument } from '../../../src/platform/run-process.ts'
import { promise } from '../../support/promise.ts'

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

const turnIn = (choice: Partial<SandboxChoice> = {}, more: Partial<ThreadSpec> = {}): ExecTurn => {
  const thread: ThreadSpec = { agent: 'a', developerInstructions: 'Say "hi".', model: 'm', effort: 'low', ...more }
  const sandbox: SandboxChoice = { mode: 'workspace-write', network: false, writable: ['/git'], ...choice }
  return {
    thread,
    terms: threadTerms(thread, '/work', sandbox),
    forCommands: { GIT_DIR: null },
    directory: '/work',
    overrides: ['model="mine"'],
    platform: 'linux',
    shellPolicy: null,
    input: 'Go on.',
    schema: '/tmp/schema.json',
  }
}

test('a turn of exec is told what a thread of an app-server is told, and what the person says last', () => {
  const { command, prompt } = execCommand(turnIn())
  expect(prompt).toBe('Go on.')
  expect(command.slice(0, 5)).toEqual(['exec', '--json', '--skip-git-repo-check', '--sandbox', 'workspace-write'])
  expect(command).toEqual(
    expect.arrayContaining([
      'developer_instructions="Say \\"hi\\"."',
      'model="m"',
      'model_reasoning_effort="low"',
      'sandbox_workspace_write={"network_access" = false}',
      'shell_environment_policy.exclude=["GIT_DIR"]',
      '--output-schema',
      '/tmp/schema.json',
    ]),
  )
  expect(command.indexOf('model="mine"')).toBeGreaterThan(command.indexOf('model="m"'))
  expect(command.slice(-3)).toEqual(['-C', '/work', '-'])
})

promise('D72')
test('folders that the person makes writable with -c are so beside those of git, and not in their place', () => {
  const overrides = ['sandbox_workspace_write.writable_roots=["/cache"]']
  const { command } = execCommand({ ...turnIn({ roots: ['/cache'] }), overrides })
  const last = command.findLast(each => each.startsWith('sandbox_workspace_write.writable_roots='))
  expect(last).toBe('sandbox_workspace_write.writable_roots=["/git", "/cache"]')
})

test('a thread that may write in some folders only has a permission profile in the place of a sandbox', () => {
  const { command } = execCommand(turnIn({}, { writable: ['src'] }))
  expect(command).not.toContain('--sandbox')
  expect(command).toContain('default_permissions="codemachine-folders"')
  expect(execCommand(turnIn({ roots: ['/cache'] }, { writable: ['src'] })).command.join()).toContain(
    '"/cache" = "write"',
  )
  expect(command.find(each => each.startsWith('permissions='))).toContain('"/work/src" = "write"')
})

test('a reviewer writes nothing, and without a sandbox codex is told so in both ways', () => {
  expect(execCommand(turnIn({ mode: 'danger-full-access' }, { readOnly: true })).command).toEqual(
    expect.arrayContaining(['--sandbox', 'read-only']),
  )
  expect(execCommand(turnIn({ mode: 'danger-full-access' })).command).toEqual(
    expect.arrayContaining(['--sandbox', 'danger-full-access', '--dangerously-bypass-approvals-and-sandbox']),
  )
})

test('instructions that are too long for an argument stand before the prompt', () => {
  const { command, prompt } = execCommand(turnIn({}, { developerInstructions: 'x'.repeat(200_000) }))
  expect(command.some(each => each.length > 100_000)).toBe(false)
  expect(prompt).toMatch(/^x+\n\nGo on\.$/)
})

test('the arguments of a thread stand behind those of codemachine, and before what the person says', () => {
  const args = ['--skip-git-repo-check', '--color', 'never', '-c', 'model_reasoning_effort="high"']
  const { command } = execCommand(turnIn({}, { args }))
  const at = (each: string) => command.indexOf(each)
  expect(command.filter(each => each === '--skip-git-repo-check')).toHaveLength(1)
  expect(command[at('--color') + 1]).toBe('never')
  expect(at('model_reasoning_effort="low"')).toBeLessThan(at('model_reasoning_effort="high"'))
  expect(at('model_reasoning_effort="high"')).toBeLessThan(at('model="mine"'))
})
