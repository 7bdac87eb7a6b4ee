//! Description of the interface for programs: OpenAPI 3.1.
mod paths;
mod schemas;

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};

const ABOUT: &str = "Requests to a controller of weir. Over TCP each needs a token: `Authorization: Bearer TOKEN`. \
                     Roles: `read` for all that changes nothing, `operate` for intents, `admin` for the rest. Errors \
                     are JSON of the type application/problem+json (RFC 9457).";

/// Returns the description.
pub(crate) fn document() -> OpenApi {
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    let info = InfoBuilder::new().title("weir").version("v1").description(Some(ABOUT)).license(Some(license)).build();
    let components = schemas::all()
        .into_iter()
        .fold(ComponentsBuilder::new(), |components, (name, schema)| components.schema(name, schema));
    let token = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = components.security_scheme(paths::TOKEN, token).build();
    OpenApiBuilder::new().info(info).paths(paths::all()).components(Some(components)).build()
}
