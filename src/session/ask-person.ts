import * as v from 'valibot'
import type { HostTool } from './template.ts'

/** Name of the tool by which an agent asks what only a person can decide. */
export const ASK_PERSON = 'ask_person'

/** What an agent would have asked, and on what it goes on meanwhile. */
export interface Question {
  question: string
  /** Answers to choose from; none: any. */
  options: string[]
  assumption: string
}

/** The most characters of a question and of an assumption, of an option, and the most options. */
export const MOST_TEXT = 2000
export const MOST_OPTION = 300
export const MOST_OPTIONS = 10

/** The tool by which an agent asks: the question is kept, and nobody is waited for. */
export const askPersonTool: HostTool = {
  name: ASK_PERSON,
  description:
    'Keeps a question for the person, who is away: for what only they can decide. It returns at once and never brings an answer; go on with your assumption. The answer, if one comes, becomes later work.',
  inputSchema: {
    type: 'object',
    properties: {
      question: {
        type: 'string',
        description: 'What is to be decided, so that it can be understood without having seen the work.',
      },
      options: {
        type: 'array',
        items: { type: 'string' },
        description: `Answers to choose from, at most ${MOST_OPTIONS}; leave it out if any answer will do.`,
      },
      assumption: { type: 'string', description: 'What you take for granted meanwhile, and go on with.' },
    },
    required: ['question', 'assumption'],
    additionalProperties: false,
  },
}

const text = (most: number) => {
  return v.pipe(
    v.string('use a text'),
    v.trim(),
    v.nonEmpty('use a text that is not empty'),
    v.maxLength(most, `use at most ${most} characters`),
    v.transform(text => text.toWellFormed()),
  )
}

const schema = v.object({
  question: text(MOST_TEXT),
  options: v.optional(
    v.pipe(
      v.nullable(v.array(text(MOST_OPTION), 'use a list of texts')),
      v.transform(options => [...new Set(options)]),
      v.maxLength(MOST_OPTIONS, `use at most ${MOST_OPTIONS}`),
    ),
    [],
  ),
  assumption: text(MOST_TEXT),
})

/** The question in a call's arguments; or what is wrong with them, a sentence for the agent. */
export function readQuestion(args: unknown): Question | { problem: string } {
  const result = v.safeParse(schema, args)
  if (result.success) return result.output
  const [issue] = result.issues
  const place = v.getDotPath(issue)
  if (place === null) return { problem: 'Call it with an object of `question`, `options` and `assumption`.' }
  const what = issue.received === 'undefined' ? 'is missing' : `is wrong: ${issue.message}`
  return { problem: `\`${place}\` ${what}. Nothing was kept; call it again.` }
}

/** By what a question is known again: its words, whatever their case and the space between them. */
export function questionKey(text: string): string {
  return text.replace(/\s+/g, ' ').trim().toLowerCase()
}
