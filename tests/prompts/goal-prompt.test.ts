import { encode } from 'gpt-tokenizer'
import { describe, expect, it } from 'vitest'
import { loadPrompt } from '../../src/base/package.ts'
import { goalInstructions } from '../../src/templates/goal/goal.ts'
import { parseTasksFile } from '../../src/workspace/memory/tasks-file.ts'

const directory = '/home/someone/projects/app'
const memory = `${directory}/.codemachine`
const folder = `${memory}/projects/20261120_1`
const paths = { directory, main: `${folder}/MAIN.md`, tasks: `${folder}/tasks.json`, kb: `${memory}/kb` }
const prompt = loadPrompt('goal')
const instructions = goalInstructions(prompt, paths)

describe('the instructions for a goal', () => {
  it('cost at most 1,200 tokens', () => {
    expect(encode(instructions).length).toBeLessThanOrEqual(1_200)
  })

  it('name the files, relative to the work directory', () => {
    expect(instructions).toContain('`.codemachine/projects/20261120_1/MAIN.md`')
    expect(instructions).toContain('`.codemachine/projects/20261120_1/tasks.json`')
    expect(instructions).toContain('`.codemachine/kb/`')
    expect(instructions).toContain(`\`${directory}\``)
    expect(instructions).not.toMatch(/\{\{|\}\}/)
  })

  it('name a file outside the work directory by its whole path', () => {
    expect(goalInstructions(prompt, { ...paths, kb: '/home/someone/kb' })).toContain('`/home/someone/kb/`')
    expect(goalInstructions(prompt, { ...paths, kb: `${directory}/..kb` })).toContain('`..kb/`')
  })

  it('never speak of rounds, budgets or limits', () => {
    expect(instructions).not.toMatch(
      /\b(rounds?|budgets?|limits?|limited|tokens?|turns?|remaining|attempts?|iterations?|hours?|minutes?|deadline)\b/i,
    )
  })

  it('show a tasks.json that is a good one', () => {
    const example = /```json\n(.*?)```/s.exec(instructions)?.[1] ?? ''
    expect(parseTasksFile(example.replace('Planning|Building|Testing|Runtime', 'Building'))).toEqual({
      ok: true,
      value: [{ id: 'T1', name: '…', phase: 'Building', done: false }],
    })
  })

  it('name every key of the front matter', () => {
    for (const key of ['status', 'finite_incantatem', 'short_title', 'git_commit', 'git_branch']) {
      expect(instructions).toContain(`\`${key}\``)
      expect(loadPrompt('MAIN.template')).toContain(`\n${key}: `)
    }
  })

  it('are never given with a placeholder left', () => {
    expect(() => goalInstructions(`${prompt} {{ round }}`, paths)).toThrow('No value for the placeholder {{ round }}')
    expect(() => goalInstructions(`${prompt} {{toString}}`, paths)).toThrow('{{toString}}')
  })

  it('keep what looks like a placeholder in a path', () => {
    expect(
      goalInstructions('{{directory}} {{ main }}', { ...paths, directory: '/a/{{main}}$&', main: '/a/{{main}}$&/M' }),
    ).toBe('/a/{{main}}$& M')
  })
})
