type TomlValue = string | number | boolean

/**
 * `config.toml` for a throw-away CODEX_HOME: `model` of the scripted provider at `url`, and nothing that touches the
 * network; `top` are more top-level keys. It starts with top-level keys and ends in the provider's table, so that text may be put before or after it.
 */
export function codexConfigText(
  url: string,
  model: string,
  provider: Readonly<Record<string, TomlValue>>,
  top: Readonly<Record<string, TomlValue>> = {},
): string {
  const settings = {
    name: 'Scripted model',
    base_url: url,
    wire_api: 'responses',
    requires_openai_auth: false,
    supports_websockets: false,
    ...provider,
  }
  return [
    ...tomlLines({ model, model_provider: 'scripted', check_for_update_on_startup: false, ...top }),
    '',
    '[features]',
    ...tomlLines({ plugins: false, apps: false, remote_plugin: false }),
    '',
    '[analytics]',
    ...tomlLines({ enabled: false }),
    '',
    '[feedback]',
    ...tomlLines({ enabled: false }),
    '',
    '[model_providers.scripted]',
    ...tomlLines(settings),
    '',
  ].join('\n')
}

/** A JSON string is a TOML basic string. */
function tomlLines(values: Readonly<Record<string, TomlValue>>): string[] {
  return Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
}
