import { followNamedFleet } from '../../../../fleet/fleet.ts'
import { settingsOf } from '../../../../project/open-run.ts'
import { serveMcp } from '../../../mcp/server.ts'
import type { CliContext } from '../../../screen/cli-context.ts'
import { warnOn } from '../../warn-on.ts'

/** Flags of `codemachine mcp`. */
interface McpFlags {
  dir?: string[]
  allowWrite?: true
  /** Whether the sessions of the fleet may be looked at and steered, too. */
  fleet?: true
}

/** For a person who has typed it. */
const TYPED =
  'This talks to an MCP client, which starts it itself: codex mcp add codemachine -- codemachine mcp. Ctrl+C ends it.\n'

/** `codemachine mcp`: serves other agents until stdin ends. */
export async function mcp(context: CliContext, { dir: typed, allowWrite, fleet }: McpFlags): Promise<number> {
  const { stdin, stdout, stderr, cwd } = context
  if (stdin.isTTY) stderr.write(TYPED)
  const say = warnOn(context)
  await using followed = fleet ? await followNamedFleet(context, say) : null
  await serveMcp({
    world: context,
    dirs: typed ?? (await dirsOf(context)),
    allowsWrite: allowWrite === true,
    fleet: followed,
    stdin,
    stdout,
    onProblem: say,
  })
  return 0

  /** Of the person's settings alone: a clone has no say. */
  async function dirsOf(world: CliContext): Promise<readonly string[]> {
    const { settings } = await settingsOf(world, cwd, {}, { withoutProject: true })
    return settings.mcp.dirs.length === 0 ? [cwd] : settings.mcp.dirs
  }
}
