import type { CliContext } from '../context.ts'
import { settingsOf } from '../open-run.ts'
import { chooseTemplate } from '../start/choose-template.ts'
import { TEMPLATES, templateNamed } from '../start/templates.ts'

/** `codemachine templates`: what `start` can start, and which of it is chosen. */
export async function listTemplates(
  context: CliContext,
  { directory, json }: { directory: string; json: boolean },
): Promise<number> {
  const { settings, sources } = await settingsOf(context, directory, {})
  const templates = TEMPLATES.map(each => ({ ...each, chosen: each.name === settings.mode }))
  if (json) {
    context.stdout.write(`${JSON.stringify(templates)}\n`)
    return 0
  }
  for (const { name, description, chosen } of templates) {
    const where = chosen ? `  (chosen: ${sources.mode.place})` : ''
    context.stdout.write(`${chosen ? '*' : ' '} ${name.padEnd(6)} ${description}${where}\n`)
  }
  context.stdout.write('To choose another one: codemachine templates select <name>\n')
  return 0
}

/** `codemachine templates select`: has `start` start sessions of that template in this project. */
export async function selectTemplate(context: CliContext, directory: string, typed: string): Promise<number> {
  context.stdout.write(`${await chooseTemplate(context, directory, templateNamed(typed))}\n`)
  return 0
}
