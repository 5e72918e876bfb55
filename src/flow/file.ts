import type { Condition, FlowEngine, Mistake, TemplatePart } from './plan.ts'

/** A place in a workflow file; `line` and `column` from 1. */
export interface At {
  /** Such as `workflow.steps[2].output.path`, counted from 0. */
  place: string
  line: number
  column: number
}

/** A value of a workflow file that can turn out to be wrong only later, with its place. */
export interface Placed<T> extends At {
  value: T
}

/** A workflow file without mistakes of its own; no other file was looked at. */
export interface FlowFile {
  /** As the person named the file. */
  file: string
  /** `newer`: one workflow, `[workflow]`; `older`: any number of them, `[workflows.<name>]`. */
  form: 'newer' | 'older'
  /** What runs where no flag says so; null: the file does not say. */
  mock: boolean | null
  engines: Readonly<Record<'codex' | 'codemachine', FileEngine>>
  /** At least one, in the order of the file. */
  workflows: readonly FileWorkflow[]
  /** By name, in the order of the file. */
  vars: ReadonlyMap<string, Placed<FileVariable>>
}

/** What `[engines.<name>]` says. */
export interface FileEngine {
  /** The program; null: the file names none. It counts only if the person's own settings or flags name the same. */
  bin: Placed<string> | null
  args: readonly string[]
}

/** A value of `[vars]`, as it is written. */
export type FileVariable =
  | { kind: 'text'; text: string }
  | { kind: 'run'; run: string }
  | { kind: 'file'; path: string }

/** One workflow of a file. */
export interface FileWorkflow extends At {
  /** Of the newer form: `name` of the file, else the name of the file itself without its ending. */
  name: string
  description: string | null
  /** From 1 to 1,000. */
  steps: readonly FileStep[]
}

/** A step as the file has it; what it left out is filled in from its agent and the defaults. */
export interface FileStep extends At {
  /** From 1. */
  index: number
  id: string
  /** Begins the names of its files: `{index}-{stem}.log`. */
  stem: string
  description: string | null
  work: FileAgentWork | FileCommandWork
  verify: readonly string[]
  retries: number
  approve: boolean
  timeoutMs: number | null
  /** It refers to earlier steps only, as `input` does. */
  when: Condition | null
  readOnly: boolean
  output: FileOutput
  /** The variables that its input and its condition name, each at its place, as often as they are named. */
  variables: readonly Placed<string>[]
}

/** A step that an agent does. */
export interface FileAgentWork {
  kind: 'agent'
  agent: string
  engine: FlowEngine
  model: string | null
  /** Of `[engines.<engine>]`. */
  args: readonly string[]
  /** The path as written, at the step or at its agent. */
  prompt: Placed<string>
  /** Empty parts where the step has no input. */
  input: Placed<readonly TemplatePart[]>
  /** The path of a JSON Schema as written. */
  schema: Placed<string> | null
  rounds: number
}

/** A step that is a command for a shell. */
export interface FileCommandWork {
  kind: 'command'
  run: string
}

/** `path`: as written, unchecked but for being a text on one line. */
export type FileOutput = { kind: 'stdout' } | { kind: 'file'; path: Placed<string>; append: boolean }

/** What is checked of a workflow file by other layers. */
export interface FileChecks {
  /** The first argument for codex that a workflow may not give; null if all are allowed. */
  refusedArgument: (args: readonly string[]) => string | null
}

/** Reads the text of a workflow file. `file`: its name in mistakes, which are all there are, in the order of the file. */
export type ReadFlowFile = (
  text: string,
  file: string,
  checks: FileChecks,
) => { file: FlowFile } | { mistakes: readonly Mistake[] }

/** The workflow of that name, the first where no name is given (null). Throws a `UserError` with the nearest name. */
export type WorkflowNamed = (file: FlowFile, name: string | null) => FileWorkflow
