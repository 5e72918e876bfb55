import { encode } from 'gpt-tokenizer'
import { describe, expect, it } from 'vitest'
import { replanInstructions } from '../../src/session/round-input.ts'
import { parseTasksFile } from '../../src/workspace/memory/tasks-file.ts'

const directory = '/home/someone/projects/app'
const folder = `${directory}/.codemachine/projects/20261120_1`
const memory = { main: `${folder}/MAIN.md`, tasks: `${folder}/tasks.json`, kb: `${directory}/.codemachine/kb` }
const instructions = replanInstructions({ directory, memory })

describe('the instructions for a change of plan', () => {
  it('cost at most 500 tokens', () => {
    expect(encode(instructions).length).toBeLessThanOrEqual(500)
  })

  it('name the files, and show a tasks.json that is a good one', () => {
    expect(instructions).toContain('`.codemachine/projects/20261120_1/MAIN.md`')
    expect(instructions).toContain('`.codemachine/projects/20261120_1/tasks.json`')
    const example = /```json\n(.*?)```/s.exec(instructions)?.[1] ?? ''
    expect(parseTasksFile(example.replace('Planning|Building|Testing|Runtime', 'Building'))).toEqual({
      ok: true,
      value: [{ id: 'T1', name: '…', phase: 'Building', done: false }],
    })
  })

  it('say that the work is not begun, and what is done stays done', () => {
    expect(instructions).toMatch(/Do not begin with the work/)
    expect(instructions).toMatch(/done stays done/)
  })

  it('never speak of rounds, budgets or limits', () => {
    expect(instructions).not.toMatch(/\b(rounds?|budgets?|limits?|tokens?|turns?|remaining|attempts?|iterations?)\b/i)
  })
})
