import { expect, test } from 'vitest'
import { readFlowFile } from '../../../src/modes/flow/file/file.ts'
import type { Mistake } from '../../../src/modes/flow/file/plan.ts'
import { promise } from '../../support/promise.ts'

const AGENT = '[agents.commit]\nprompt = "a.md"\n'
const STEP = `${AGENT}[workflow]\n[[workflow.steps]]\n`
const TWO = `${AGENT}[[workflow.steps]]\nid = "one"\nagent = "commit"\n[[workflow.steps]]\nid = "two"\nagent = "commit"\n`
const TESTED = `${AGENT}[[workflow.steps]]\nid = "test"\nrun = "npm test"\n[[workflow.steps]]\nagent = "commit"\n`

/** A file, and its mistakes as they are printed. */
const MISTAKES: readonly (readonly [what: string, content: string, ...mistakes: string[]])[] = [
  [
    'a key without end',
    `${'k'.repeat(50_000)} = 1\n${STEP}agent = "commit"\n`,
    `x.toml:1:1: ${'k'.repeat(99)}…: is an unknown key; the known ones are name, include, defaults, engines, agents, workflow, workflows, vars`,
  ],
  [
    'TOML that is not valid',
    'name = "x"\n[agents\n',
    'x.toml:2:8: : not valid TOML: unterminated table-key; close it with "]"',
  ],
  [
    'a text without quotes',
    '[defaults]\nengine = codex\n',
    'x.toml:2:10: : not valid TOML: unexpected character; put a text in quotes',
  ],
  [
    'a key that is there twice',
    '[defaults]\nmock = true\nmock = false\n',
    'x.toml:3:1: : not valid TOML: defining a key multiple times is invalid; leave one of them out',
  ],
  [
    'an empty file',
    '',
    'x.toml:1:1: workflow: is missing; begin the workflow with a line [workflow], and each of its steps with a line [[workflow.steps]]',
  ],
  [
    'neither of the two forms',
    AGENT,
    'x.toml:1:1: workflow: is missing; begin the workflow with a line [workflow], and each of its steps with a line [[workflow.steps]]',
  ],
  [
    'a table of the file that is misspelt',
    `${AGENT}[workflw]\n[[workflow.steps]]\nagent = "commit"\n`,
    'x.toml:3:1: workflw: is an unknown key; did you mean "workflow"?',
  ],
  [
    'steps at the top',
    `${AGENT}[[steps]]\nagent = "commit"\n`,
    'x.toml:1:1: workflow: is missing; begin the workflow with a line [workflow], and each of its steps with a line [[workflow.steps]]',
    'x.toml:3:1: steps: is an unknown key; begin each step with a line [[workflow.steps]]',
  ],
  [
    'both forms',
    `${AGENT}[[workflow.steps]]\nagent = "commit"\n[[workflows.x.steps]]\nuse = "commit"\n`,
    'x.toml:5:3: workflows: a file has one of the two forms, [workflow] or [workflows.NAME]; write all of its workflows as [workflows.NAME]',
  ],
  [
    'both forms, the older one first',
    `${AGENT}[[workflows.x.steps]]\nuse = "commit"\n[workflow]\nsteps = [{ agent = "commit" }]\n`,
    'x.toml:5:1: workflow: a file has one of the two forms, [workflow] or [workflows.NAME]; write all of its workflows as [workflows.NAME]',
  ],
  [
    'no steps',
    `${AGENT}[workflow]\ndescription = "nothing"\n`,
    'x.toml:3:1: workflow.steps: is missing; begin each step with a line [[workflow.steps]]',
  ],
  [
    'a list of steps that is empty',
    `${AGENT}[workflow]\nsteps = []\n`,
    'x.toml:4:1: workflow.steps: is empty; begin each step with a line [[workflow.steps]]',
  ],
  [
    'no steps in one workflow of two',
    `${AGENT}[[workflows.a.steps]]\nuse = "commit"\n[workflows.b]\n`,
    'x.toml:5:1: workflows.b.steps: is missing; begin each step with a line [[workflows.NAME.steps]]',
  ],
  [
    'no workflow',
    `${AGENT}[workflows]\n`,
    'x.toml:3:1: workflows: has no workflow; begin one with a line [workflows.NAME], and its steps with [[workflows.NAME.steps]]',
  ],
  [
    'a workflow that is a list',
    `${AGENT}[[workflow]]\ndescription = "x"\n`,
    'x.toml:3:1: workflow: is not a table; begin it with a line [workflow]',
  ],
  [
    'steps that are one table',
    `${AGENT}[workflow.steps]\nagent = "commit"\n`,
    'x.toml:3:1: workflow.steps: is not a list; begin each of its tables with a line [[workflow.steps]]',
  ],
  [
    'a loop without a list',
    `${TWO}for_each = "{{steps.one.exit}}"\n[[workflow.steps]]\nagent = "commit"\nfor_each = "{{item}}"\n`,
    'x.toml:9:1: workflow.steps[1].for_each: is no list; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or a list of texts',
    'x.toml:12:1: workflow.steps[2].for_each: is no list; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or a list of texts',
  ],
  [
    'a loop over a later step, and over one that is not there',
    `${STEP}agent = "commit"\nfor_each = "{{steps.two.output}}"\n[[workflow.steps]]\nid = "two"\nagent = "commit"\nfor_each = "{{steps.one.output}}"\n`,
    'x.toml:6:13: workflow.steps[0].for_each: step "two" comes later (it is step 2); move it before this one',
    'x.toml:10:13: workflow.steps[1].for_each: there is no step "one"; use the id of an earlier step',
  ],
  [
    'needs of a later step, of itself, and of one that is not there',
    `${AGENT}[[workflow.steps]]\nid = "one"\nagent = "commit"\nneeds = ["two", "one", "on"]\n[[workflow.steps]]\nid = "two"\nagent = "commit"\n`,
    'x.toml:6:10: workflow.steps[0].needs[0]: step "two" comes later (it is step 2); move it before this one',
    'x.toml:6:17: workflow.steps[0].needs[1]: step "one" cannot use its own result; use an earlier step',
    'x.toml:6:24: workflow.steps[0].needs[2]: there is no step "on"; the nearest is "one"',
  ],
  [
    'a loop that is a number',
    `${STEP}agent = "commit"\nfor_each = 3\n`,
    'x.toml:6:12: workflow.steps[0].for_each: is 3; use "{{steps.ID.answer.FIELD}}", another reference, or a list of at most 100 texts',
  ],
  [
    'a loop of commands, and fields of its list',
    `${STEP}run = "npm test"\nfor_each = ["a"]\n[[workflow.steps]]\nagent = "commit"\nschema = "a.json"\nfor_each = ["a"]\noutput = { kind = "file", path = "a.md", field = "notes" }\n`,
    'x.toml:6:1: workflow.steps[0].for_each: works only with an agent that is no mock; leave it out',
    'x.toml:11:42: workflow.steps[1].output.field: the output of a step with for_each is a list, and has no fields; leave field out',
  ],
  [
    'a step that is a text',
    `${AGENT}[workflow]\nsteps = ["commit"]\n`,
    'x.toml:4:10: workflow.steps[0]: is not a table; begin it with a line [[workflow.steps]]',
  ],
  [
    'a description that is a number',
    `${STEP}agent = "commit"\ndescription = 3\n`,
    'x.toml:6:15: workflow.steps[0].description: is 3; use a text on one line of at most 500 characters, such as "commit-message"',
  ],
  [
    'the name of a workflow where none is',
    `${AGENT}[workflow]\nname = "x"\n[[workflow.steps]]\nagent = "commit"\n`,
    'x.toml:4:1: workflow.name: is an unknown key; write the name of the workflow at the top of the file, before the first table',
  ],
  [
    'a name on two lines',
    `name = "a\\nb"\n${STEP}agent = "commit"\n`,
    `x.toml:1:8: name: is "a\\nb"; use a name on one line, such as "commit_flow"`,
  ],
  [
    'an engine that is not there',
    `[defaults]\nengine = "claude"\n${STEP}agent = "commit"\n`,
    'x.toml:2:10: defaults.engine: there is no engine "claude"; name it in a table [engines.NAME] of your own config.toml',
  ],
  [
    'a mock that is a text',
    `[defaults]\nmock = "yes"\n${STEP}agent = "commit"\n`,
    'x.toml:2:8: defaults.mock: is "yes"; use true or false',
  ],
  [
    'an unknown default',
    `[defaults]\nmok = true\n${STEP}agent = "commit"\n`,
    'x.toml:2:1: defaults.mok: is an unknown key; did you mean "mock"?',
  ],
  [
    'an engine with variables',
    `[engines.codex]\nenv = { A = "1" }\n${STEP}agent = "commit"\n`,
    'x.toml:2:1: engines.codex.env: is an unknown key; a workflow file cannot set environment variables; set them in your own shell',
  ],
  [
    'settings of an engine that is not there',
    `[engines.codx]\n${STEP}agent = "commit"\n`,
    'x.toml:1:1: engines.codx: is an unknown key; did you mean "codex"?',
  ],
  [
    'settings of the engine mock',
    `[engines.mock]\n${STEP}agent = "commit"\n`,
    'x.toml:1:1: engines.mock: is an unknown key; the engine mock has no settings; leave the table out',
  ],
  [
    'arguments that are one text',
    `[engines.codex]\nargs = "--color=never"\n${STEP}agent = "commit"\n`,
    'x.toml:2:8: engines.codex.args: is "--color=never"; use a list of at most 100, each a text on one line, such as "--color=never"',
  ],
  [
    'an argument that touches the sandbox',
    `[engines.codex]\nargs = ["--color=never", "--sandbox=off"]\n${STEP}agent = "commit"\n`,
    'x.toml:2:26: engines.codex.args[1]: a workflow may not give codex the argument "--sandbox"; leave it out, and set it yourself',
  ],
  [
    'arguments for codemachine',
    `[engines.codemachine]\nargs = ["--rounds", "3"]\n${STEP}agent = "commit"\n`,
    'x.toml:2:8: engines.codemachine.args: is ["--rounds", "3"]; use an empty list; the engine codemachine takes no arguments',
  ],
  [
    'an agent without a prompt',
    '[agents.commit]\n[[workflow.steps]]\nagent = "commit"\n',
    'x.toml:1:1: agents.commit.prompt: is missing; write prompt = "prompts/review.md", the path of its instructions',
  ],
  [
    'an agent that is a text',
    'agents.commit = "a.md"\n[[workflow.steps]]\nrun = "true"\n',
    'x.toml:1:17: agents.commit: is not a table; begin it with a line [agents.commit]',
  ],
  [
    'an agent whose name is a path',
    '[agents."../x"]\nprompt = "a.md"\n[[workflow.steps]]\nrun = "true"\n',
    'x.toml:1:1: agents."../x": cannot have this name; use letters, digits, "_", "-", "." and single spaces between them, at most 60',
  ],
  [
    'an unknown key of an agent',
    '[agents.commit]\npromt = "a.md"\nprompt = "b.md"\n[[workflow.steps]]\nagent = "commit"\n',
    'x.toml:2:1: agents.commit.promt: is an unknown key; did you mean "prompt"?',
  ],
  [
    'a model that is empty',
    '[agents.commit]\nmodel = ""\nprompt = "b.md"\n[[workflow.steps]]\nagent = "commit"\n',
    'x.toml:2:9: agents.commit.model: is ""; use the name of a model, such as "gpt-5"',
  ],
  [
    'a value in the path of a prompt',
    '[agents.commit]\nprompt = "{{name}}.md"\n[[workflow.steps]]\nagent = "commit"\n',
    'x.toml:2:10: agents.commit.prompt: codemachine fills in no {{name}} here. Write the value itself; references work only in the template of an input, and in when',
  ],
  [
    'a step without an agent',
    `${STEP}description = "x"\n`,
    'x.toml:4:1: workflow.steps[0].agent: is missing; write agent = "commit", or run = "a command"',
  ],
  [
    'an agent that is not there',
    `${STEP}agent = "comit"\n`,
    'x.toml:5:9: workflow.steps[0].agent: there is no agent "comit"; the nearest is "commit"',
  ],
  [
    'an agent that nothing is like',
    `${STEP}agent = "reviewer"\n`,
    'x.toml:5:9: workflow.steps[0].agent: there is no agent "reviewer"; the file has "commit"',
  ],
  [
    'an agent where there are none',
    '[[workflow.steps]]\nagent = "commit"\n',
    'x.toml:2:9: workflow.steps[0].agent: there is no agent "commit"; begin one with a line [agents.NAME]',
  ],
  [
    'use in the newer form',
    `${STEP}use = "commit"\n`,
    'x.toml:5:1: workflow.steps[0].use: is an unknown key; in this form of the file a step names its agent with agent = "…"',
  ],
  [
    'agent in the older form',
    `${AGENT}[[workflows.x.steps]]\nagent = "commit"\n`,
    'x.toml:4:1: workflows.x.steps[0].agent: is an unknown key; in this form of the file a step names its agent with use = "…"',
  ],
  [
    'a step with an agent and a command',
    `${STEP}agent = "commit"\nrun = "npm test"\n`,
    'x.toml:5:1: workflow.steps[0].agent: a step that is a command (run) has no agent; leave one of the two out',
  ],
  [
    'a command with a schema and rounds',
    `${STEP}run = "npm test"\nschema = "x.json"\nrounds = 3\n`,
    'x.toml:6:1: workflow.steps[0].schema: a step that is a command (run) has no schema; leave one of the two out',
    'x.toml:7:1: workflow.steps[0].rounds: a step that is a command (run) has no rounds; leave one of the two out',
  ],
  [
    'a command of two lines',
    `${STEP}run = "npm ci\\nnpm test"\n`,
    `x.toml:5:7: workflow.steps[0].run: is "npm ci\\nnpm test"; use a command on one line, such as "npm test"`,
  ],
  [
    'a command into which a value would be put',
    `${STEP}run = "git commit -m {{message}}"\n`,
    'x.toml:5:7: workflow.steps[0].run: codemachine fills in no {{message}} here. Write the value itself; references work only in the template of an input, and in when',
  ],
  [
    'an unknown key of a step',
    `${STEP}agent = "commit"\nretrys = 2\n`,
    'x.toml:6:1: workflow.steps[0].retrys: is an unknown key; did you mean "retries"?',
  ],
  [
    'a template that stands at the step',
    `${STEP}agent = "commit"\ntemplate = "x"\n`,
    'x.toml:6:1: workflow.steps[0].template: is an unknown key; it belongs below a line [workflow.steps.input]',
  ],
  [
    'a path that stands at the step',
    `${STEP}agent = "commit"\npath = "x"\n`,
    'x.toml:6:1: workflow.steps[0].path: is an unknown key; it belongs below a line [workflow.steps.output]',
  ],
  [
    'an id that is no slug',
    `${STEP}agent = "commit"\nid = "Run Tests"\n`,
    'x.toml:6:6: workflow.steps[0].id: is not an id; an id has lower-case letters, digits and single dashes, at most 60; write id = "run-tests"',
  ],
  [
    'an id twice',
    `${TWO}[[workflow.steps]]\nid = "one"\nagent = "commit"\n`,
    'x.toml:10:6: workflow.steps[2].id: step 1 has the id "one" already; give each step its own',
  ],
  [
    'too many retries',
    `${STEP}agent = "commit"\nretries = 6\n`,
    'x.toml:6:11: workflow.steps[0].retries: is 6; use a whole number from 0 to 5',
  ],
  [
    'retries that are a text',
    `${STEP}agent = "commit"\nretries = "2"\n`,
    'x.toml:6:11: workflow.steps[0].retries: is "2"; use a whole number from 0 to 5',
  ],
  [
    'approve that is a text',
    `${STEP}agent = "commit"\napprove = "yes"\n`,
    'x.toml:6:11: workflow.steps[0].approve: is "yes"; use true or false',
  ],
  [
    'a time without a unit',
    `${STEP}agent = "commit"\ntimeout = 30\n`,
    'x.toml:6:11: workflow.steps[0].timeout: is 30; use a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"',
  ],
  [
    'a time of two days',
    `${STEP}agent = "commit"\ntimeout = "2d"\n`,
    'x.toml:6:11: workflow.steps[0].timeout: is "2d"; use a time with its unit from 1 second to 24 hours, such as "90s", "10m" or "1h30m"',
  ],
  [
    'a sandbox that is not stricter',
    `${STEP}agent = "commit"\nsandbox = "danger-full-access"\n`,
    'x.toml:6:11: workflow.steps[0].sandbox: is "danger-full-access"; use "read-only"',
  ],
  [
    'a step that could not write down that it is done',
    `${STEP}agent = "commit"\nengine = "codemachine"\nsandbox = "read-only"\n`,
    'x.toml:7:11: workflow.steps[0].sandbox: a step of the engine codemachine must be able to write its tasks.json; leave sandbox out, or write engine = "codex"',
  ],
  [
    'commands to verify that are one text',
    `${STEP}agent = "commit"\nverify = "npm test"\n`,
    'x.toml:6:10: workflow.steps[0].verify: is "npm test"; use a list of at most 50, each a command on one line, such as "npm test"',
  ],
  [
    'one of several commands to verify that is empty',
    `${STEP}agent = "commit"\nverify = ["npm test", ""]\n`,
    'x.toml:6:23: workflow.steps[0].verify[1]: is ""; use a command on one line, such as "npm test"',
  ],
  [
    'rounds of an engine that has one',
    `${STEP}agent = "commit"\nrounds = 3\n`,
    'x.toml:6:1: workflow.steps[0].rounds: a step of this engine is one round; leave rounds out, or write engine = "codemachine"',
  ],
  [
    'an input without a template',
    `${STEP}agent = "commit"\n[workflow.steps.input]\n`,
    'x.toml:6:1: workflow.steps[0].input.template: is missing; write template = "…"; the agent gets this text',
  ],
  [
    'an input that is a text',
    `${STEP}agent = "commit"\ninput = "x"\n`,
    'x.toml:6:9: workflow.steps[0].input: is not a table; begin it with a line [workflow.steps.input]',
  ],
  [
    'an unknown key of an input',
    `${STEP}agent = "commit"\n[workflow.steps.input]\ntemplate = "x"\ntempalte = "y"\n`,
    'x.toml:8:1: workflow.steps[0].input.tempalte: is an unknown key; did you mean "template"?',
  ],
  [
    'an output of an unknown kind',
    `${STEP}agent = "commit"\n[workflow.steps.output]\nkind = "stderr"\n`,
    'x.toml:7:8: workflow.steps[0].output.kind: is "stderr"; use one of "stdout", "file"',
  ],
  [
    'an output into a file without a path',
    `${STEP}agent = "commit"\n[workflow.steps.output]\nkind = "file"\n`,
    'x.toml:6:1: workflow.steps[0].output.path: is missing; write path = "…", relative to the work directory',
  ],
  [
    'an output with a path and no kind',
    `${STEP}agent = "commit"\n[workflow.steps.output]\npath = "x.md"\n`,
    'x.toml:6:1: workflow.steps[0].output.kind: is missing; write kind = "file"',
  ],
  [
    'an output on the screen with a path',
    `${STEP}agent = "commit"\noutput = { kind = "stdout", path = "x.md" }\n`,
    'x.toml:6:29: workflow.steps[0].output.path: works only for a file; write kind = "file", or leave path out',
  ],
  [
    'outputs of which two are the same file, one has no path, and one is no table',
    `${STEP}agent = "commit"\noutput = [{ kind = "file", path = "a" }, { kind = "file", path = "a" }, { kind = "file" }, "b"]\n`,
    'x.toml:6:66: workflow.steps[0].output[1].path: is an output of this step already; leave one of the two out',
    'x.toml:6:73: workflow.steps[0].output[2].path: is missing; write path = "…", relative to the work directory',
    'x.toml:6:92: workflow.steps[0].output[3]: is not a table; begin it with a line [[workflow.steps.output]]',
  ],
  [
    'an output of a field, of a step without a schema, and of a field without a name',
    `${STEP}agent = "commit"\n[[workflow.steps.output]]\nkind = "file"\npath = "a"\nfield = "b"\n[[workflow.steps.output]]\nkind = "file"\npath = "c"\nfield = "d."\n`,
    'x.toml:9:1: workflow.steps[0].output[0].field: the step has no schema, so its answer has no fields; give it schema = "…", or leave field out',
    'x.toml:13:9: workflow.steps[0].output[1].field: is "d."; use a field of the answer, such as "notes"',
  ],
  [
    'a value in the path of an output',
    `${STEP}agent = "commit"\noutput = { kind = "file", path = "{{name}}.md" }\n`,
    'x.toml:6:34: workflow.steps[0].output.path: codemachine fills in no {{name}} here. Write the value itself; references work only in the template of an input, and in when',
  ],
  [
    'a template that is not closed',
    `${STEP}agent = "commit"\ninput.template = "a {{diff"\n`,
    'x.toml:6:21: workflow.steps[0].input.template: there is no }} for this {{; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or {{steps.ID.exit}}',
  ],
  [
    'a template with what is no name',
    `${STEP}agent = "commit"\ninput.template = "a\\t{{the diff}} and {{}}"\n`,
    'x.toml:6:22: workflow.steps[0].input.template: "{{the diff}}" names no value; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or {{steps.ID.exit}}',
    'x.toml:6:39: workflow.steps[0].input.template: "{{}}" names no value; write {{NAME}}, {{steps.ID.output}}, {{steps.ID.answer.FIELD}} or {{steps.ID.exit}}',
  ],
  [
    'a part of a step that is not there',
    `${TWO}input.template = "{{steps.one.ouput}}"\n`,
    'x.toml:9:19: workflow.steps[1].input.template: "{{steps.one.ouput}}": a step has no "ouput"; the nearest is "output"',
  ],
  [
    'an output with a field',
    `${TWO}input.template = "{{steps.one.output.title}}"\n`,
    'x.toml:9:19: workflow.steps[1].input.template: "{{steps.one.output.title}}": output has no fields; use steps.one.answer.title or leave them out',
  ],
  [
    'a step that is not there',
    `${TWO}input.template = """\nFirst:\n  {{steps.onne.output}}"""\n`,
    'x.toml:11:3: workflow.steps[1].input.template: there is no step "onne"; the nearest is "one"',
  ],
  [
    'a step that comes later',
    `${AGENT}[[workflow.steps]]\nagent = "commit"\ninput.template = "{{steps.later.output}}"\n[[workflow.steps]]\nid = "later"\nrun = "true"\n`,
    'x.toml:5:19: workflow.steps[0].input.template: step "later" comes later (it is step 2); move it before this one',
  ],
  [
    'a step that uses itself',
    `${TWO}input.template = "{{steps.two.output}}"\n`,
    'x.toml:9:19: workflow.steps[1].input.template: step "two" cannot use its own result; use an earlier step',
  ],
  [
    'an answer of a step without a schema',
    `${TWO}input.template = "{{steps.one.answer.title}}"\n`,
    'x.toml:9:19: workflow.steps[1].input.template: step "one" has no schema, so it has no answer; give it schema = "…", or use steps.one.output',
  ],
  [
    'an answer of a command',
    `${TESTED}input.template = "{{steps.test.answer}}"\n`,
    'x.toml:8:19: workflow.steps[1].input.template: step "test" is a command, and a command has no answer; use steps.test.output or steps.test.exit',
  ],
  [
    'a condition without a comparison',
    `${TESTED}when = "{{steps.test.exit}}"\n`,
    'x.toml:8:28: workflow.steps[1].when: there is no comparison; write one of ==, !=, <=, >=, <, >, contains, as in "{{steps.test.exit}} != 0"',
  ],
  [
    'a condition with one equals sign',
    `${TESTED}when = "{{steps.test.exit}} = 0"\n`,
    'x.toml:8:28: workflow.steps[1].when: = is no comparison; write one of ==, !=, <=, >=, <, >, contains, as in "{{steps.test.exit}} != 0"',
  ],
  [
    'a condition without its second value',
    `${TESTED}when = "{{steps.test.exit}} != "\n`,
    `x.toml:8:32: workflow.steps[1].when: a value is missing here; write both, as in "{{steps.test.exit}} != 0" (an empty text is '')`,
  ],
  [
    'two comparisons with a sign between them',
    `${TESTED}when = "{{steps.test.exit}} != 0 && {{a}} == 1"\n`,
    'x.toml:8:34: workflow.steps[1].when: only "and" or "or" can follow a comparison; leave out "&& {{a}} == 1", or put a text of several words in quotes',
  ],
  [
    'a second comparison that is incomplete',
    `${TESTED}when = "{{steps.test.exit}} != 0 and {{a}}"\n`,
    'x.toml:8:43: workflow.steps[1].when: there is no comparison; write one of ==, !=, <=, >=, <, >, contains, as in "{{steps.test.exit}} != 0"',
  ],
  [
    'a condition of what cannot differ',
    `${TESTED}when = "1 == 1"\n`,
    'x.toml:8:9: workflow.steps[1].when: it compares two fixed texts; use a reference, as in "{{steps.test.exit}} != 0"',
  ],
  [
    'a condition of an output',
    `${TESTED}when = "ok == {{steps.test.output}}"\n`,
    'x.toml:8:15: workflow.steps[1].when: an output cannot be compared, because it is too long; use steps.ID.exit, or steps.ID.answer.FIELD of a step with a schema',
  ],
  [
    'a variable with a name that none can have',
    `${STEP}agent = "commit"\n[vars]\n"a b" = "x"\n`,
    'x.toml:7:1: vars."a b": cannot have this name; use a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps"',
  ],
  [
    'a variable that is called steps',
    `${STEP}agent = "commit"\n[vars]\nsteps = "x"\n`,
    'x.toml:7:1: vars.steps: cannot have this name; use a name of at most 100 letters, digits, "_" and "-" that begins with a letter, and is not "steps"',
  ],
  [
    'a variable that is a list',
    `${STEP}agent = "commit"\n[vars]\ndiff = ["x"]\n`,
    'x.toml:7:8: vars.diff: is ["x"]; use a text, { run = "a command" } or { file = "a path" }',
  ],
  [
    'a variable that is run and read',
    `${STEP}agent = "commit"\n[vars]\ndiff = { run = "git diff", file = "x.diff" }\n`,
    'x.toml:7:8: vars.diff: is a table; use a text, { run = "a command" } or { file = "a path" }',
  ],
  [
    'a variable of an unknown kind',
    `${STEP}agent = "commit"\n[vars]\ndiff = { rum = "git diff" }\n`,
    'x.toml:7:8: vars.diff: is a table; use a text, { run = "a command" } or { file = "a path" }',
  ],
]

const refusedArgument = (args: readonly string[]) =>
  args.some(each => each.startsWith('--sandbox')) ? '--sandbox' : null

promise(
  'F1',
  'Every mistake in a workflow file is told at once, with its line, its column, its place and how to mend it',
)
test.each(MISTAKES)('%s is told with its place and its mend', (_, content, ...mistakes) => {
  expect(mistakes).not.toEqual([])
  const told = mistakesOf(content)
  expect(
    told.map(({ file, line, column, place, problem }) => `${file}:${line}:${column}: ${place}: ${problem}`),
  ).toEqual(mistakes)
})

function mistakesOf(content: string): readonly Mistake[] {
  const read = readFlowFile(content, 'x.toml', { refusedArgument })
  return 'mistakes' in read ? read.mistakes : []
}

promise('F1')
test('all mistakes of a file are told at once, in its order, and of very many the first 200', () => {
  const step = '[[workflow.steps]]\nagnt = "x"\nretries = -1\n'
  const told = mistakesOf(step.repeat(300))
  expect(told.slice(0, 3).map(({ line, place }) => `${line} ${place}`)).toEqual([
    '1 workflow.steps[0].agent',
    '2 workflow.steps[0].agnt',
    '3 workflow.steps[0].retries',
  ])
  expect(told).toHaveLength(201)
  expect(told.at(-1)).toMatchObject({ place: '', problem: 'there are 700 more mistakes; fix these first' })
})

test('what could be read of a file with mistakes is there for a look at the files that it names', () => {
  const content = `${STEP}agent = "commit"\nretries = 9\noutput = { kind = "file", path = ".git/x" }\n[[workflow.steps]]\nagent = "x"\n`
  const read = readFlowFile(content, 'x.toml', { refusedArgument })
  const steps = 'mistakes' in read ? read.sound?.workflows[0]?.steps : []
  expect(steps).toMatchObject([
    { index: 1, work: { prompt: { value: 'a.md' } }, output: { path: { value: '.git/x' } } },
  ])
  expect(readFlowFile('[', 'x.toml', { refusedArgument })).toMatchObject({ sound: null })
})

test('more than 1,000 steps are too many', () => {
  const told = mistakesOf('[[workflow.steps]]\nrun = "true"\n'.repeat(1001))
  const problem = 'is beyond the 1000 that there may be; leave some out'
  expect(told).toEqual([{ file: 'x.toml', line: 2001, column: 1, place: 'workflow.steps[1000]', problem }])
})

test.each([
  ['"{{}}"', '6:13'],
  ["'{{}}'", '6:13'],
  [String.raw`"\t\"\u00e9\U0001F600{{}}"`, '6:33'],
  ['"差异 😀{{}}"', '6:18'],
  ['"""{{}}"""', '6:15'],
  ['"""\n{{}}"""', '7:1'],
  ['"""\r\na\r\n {{}}"""', '8:2'],
  ['"""a \\\n   b\n{{}}"""', '8:1'],
  ["'''\n\\u\n{{}}'''", '8:1'],
])('in the template %j what is wrong has its place as the file lies there, %s', (template, place) => {
  // It stands in the sixth line, from column 12 on.
  const step = '[agents.commit]\nprompt = "a.md"\n[[workflow.steps]]\nagent = "commit"\n[workflow.steps.input]\n'
  const [told] = mistakesOf(`${step}template = ${template}\n`)
  expect(`${told?.line}:${told?.column}`).toBe(place)
})
