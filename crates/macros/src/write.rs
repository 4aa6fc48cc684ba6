//! What is written for a block.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, GenericParam, Generics, Path, Token, Type};

use crate::block::Block;
use crate::handler::Handler;
use crate::tokens;

/// What stands in the parentheses of `#[handlers(..)]`.
#[derive(Default)]
struct Options {
    message: Option<Ident>,
    root: Option<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.root = Some(input.call(Path::parse_mod_style)?);
            } else {
                let key: Ident = input.parse()?;
                if key != "message" {
                    let what = "unknown option: there are `message = Name` and `crate = path`";
                    return Err(Error::new(key.span(), what));
                }
                input.parse::<Token![=]>()?;
                options.message = Some(input.parse()?);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

pub(crate) fn expand(options: TokenStream, block: TokenStream) -> TokenStream {
    let parsed = syn::parse2(options).and_then(|options| Ok((options, syn::parse2(block)?)));
    let (options, block): (Options, Block) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return error.into_compile_error(),
    };
    let root = options.root.map(|root| {
        // What is written is the macro's: lints about paths are not for the user.
        tokens::respan(&root.to_token_stream(), Span::mixed_site())
    });
    let root = root.unwrap_or_else(|| quote!(::strowger));
    let name = options.message.or_else(|| message_name(&block.this));
    let Some(name) = name else {
        let what = "this type has no name: call its messages with `#[handlers(message = Name)]`";
        return Error::new_spanned(&block.this, what).into_compile_error();
    };
    let faults = block.faults.iter().map(Error::to_compile_error);
    let written = Glue::new(&block, name, &root).write();
    quote!(#(#faults)* #written)
}

fn message_name(this: &Type) -> Option<Ident> {
    let Type::Path(path) = this else { return None };
    let last = &path.path.segments.last()?.ident;
    Some(format_ident!("{last}Message"))
}

struct Glue<'a> {
    block: &'a Block,
    root: &'a TokenStream,
    name: Ident,
    /// The message type's own parameters.
    generics: Generics,
    cases: Vec<Case<'a>>,
    /// The conditions on the whole block.
    cfgs: TokenStream,
}

struct Case<'a> {
    handler: &'a Handler,
    name: Ident,
    /// What was sent: without `Self`, so that it can stand outside of the block.
    sent: TokenStream,
    /// What arrives: for a request, with its reply.
    arrives: TokenStream,
    cfgs: TokenStream,
}

impl<'a> Glue<'a> {
    fn new(block: &'a Block, name: Ident, root: &'a TokenStream) -> Self {
        let this = block.this.to_token_stream();
        let cases: Vec<Case<'_>> = block
            .handlers
            .iter()
            .map(|handler| {
                let sent = tokens::qualify(handler.message.to_token_stream(), root);
                let sent = tokens::name_self(sent, &this);
                let span = handler.message.span();
                let arrives = if handler.is_asked {
                    let root = tokens::respan(root, span);
                    quote_spanned!(span=> #root::Ask<#sent>)
                } else {
                    sent.clone()
                };
                let cfgs = handler.attributes("cfg").map(ToTokens::to_token_stream);
                Case {
                    handler,
                    name: handler.case(),
                    sent,
                    arrives,
                    cfgs: cfgs.collect(),
                }
            })
            .collect();
        let generics = named_parameters(&block.generics, &cases);
        let cfgs = block.attributes.iter();
        let cfgs = cfgs.filter(|attribute| attribute.path().is_ident("cfg"));
        Self {
            block,
            root,
            name,
            generics,
            cases,
            cfgs: cfgs.map(ToTokens::to_token_stream).collect(),
        }
    }

    fn write(&self) -> TokenStream {
        let parts = [
            self.conditions(),
            self.message(),
            self.debug(),
            self.accepts(),
            self.actor(),
            self.methods(),
        ];
        parts.into_iter().collect()
    }

    /// What is asked of each message, as conditions of a function that nobody calls: the compiler
    /// looks at it first, and points at the message, not at what is made of it.
    fn conditions(&self) -> TokenStream {
        let Self { root, cfgs, .. } = self;
        let parameters = &self.generics.params;
        let bounds = self.generics.where_clause.iter();
        let bounds = bounds.flat_map(|clause| clause.predicates.iter());
        let quiet = quiet();
        let each = self.cases.iter().map(|case| {
            let Case { sent, cfgs, .. } = case;
            let bounds = bounds.clone();
            let bound = if case.handler.is_asked {
                let root = tokens::respan(root, sent.span());
                quote_spanned!(sent.span()=> #sent: #root::Request)
            } else {
                quote_spanned!(sent.span()=> #sent: ::core::marker::Send)
            };
            quote! {
                #cfgs
                #quiet
                const _: () = { fn _message<#parameters>() where #(#bounds,)* #bound {} };
            }
        });
        each.map(|one| quote!(#cfgs #one)).collect()
    }

    /// The enum of all messages.
    fn message(&self) -> TokenStream {
        let Self { cfgs, name, .. } = self;
        let this = self.block.this.to_token_stream().to_string();
        let (parameters, bounds) = (&self.generics.params, &self.generics.where_clause);
        let cases = self.cases.iter().map(|case| {
            let Case {
                name,
                arrives,
                cfgs,
                ..
            } = case;
            let docs: Vec<_> = case.handler.attributes("doc").collect();
            let docs = if docs.is_empty() {
                let line = format!("For the handler `{}`.", case.handler.name);
                quote!(#[doc = #line])
            } else {
                quote!(#(#docs)*)
            };
            quote!(#cfgs #docs #name(#arrives))
        });
        let line = format!("What `{this}` takes: a case for each of its handlers.");
        quote! {
            #cfgs
            #[doc = #line]
            #[allow(
                private_interfaces, unnameable_types, unreachable_pub, unused_qualifications,
                clippy::large_enum_variant,
                reason = "as public as its actor may be, which this macro cannot see"
            )]
            pub enum #name<#parameters> #bounds { #(#cases),* }
        }
    }

    /// Messages need no `Debug`; the name of the case is enough for a log.
    fn debug(&self) -> TokenStream {
        let Self { cfgs, name, .. } = self;
        let (parameters, arguments, bounds) = self.generics.split_for_impl();
        let f = Ident::new("f", Span::mixed_site());
        let arms = self.cases.iter().map(|Case { name, cfgs, .. }| {
            let text = name.to_string();
            quote!(#cfgs Self::#name(_) => #f.write_str(#text))
        });
        quote! {
            #cfgs
            impl #parameters ::core::fmt::Debug for #name #arguments #bounds {
                fn fmt(&self, #f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    match *self { #(#arms),* }
                }
            }
        }
    }

    fn accepts(&self) -> TokenStream {
        let Self { root, name, .. } = self;
        let (parameters, arguments, bounds) = self.generics.split_for_impl();
        let message = Ident::new("message", Span::mixed_site());
        let quiet = quiet();
        let each = self.cases.iter().map(|one| {
            let Case {
                name: case,
                arrives,
                cfgs,
                sent,
                ..
            } = one;
            let all = &self.cfgs;
            // What is wrong with the type is said where the user wrote it.
            let span = sent.span();
            let root = tokens::respan(root, span);
            let head = quote_spanned!(span=> impl #parameters #root::Accepts<#arrives> for);
            let body = quote!(fn wrap(#message: #arrives) -> Self { Self::#case(#message) });
            let body = tokens::braced(body, span);
            quote! {
                #all
                #cfgs
                #quiet
                #head #name #arguments #bounds #body
            }
        });
        each.collect()
    }

    /// The trait, with the two items that were left out.
    fn actor(&self) -> TokenStream {
        let Self { root, name, .. } = self;
        let Block {
            attributes,
            impl_token,
            actor_trait,
            this,
            braces,
            kept,
            ..
        } = self.block;
        let (parameters, _, bounds) = self.block.generics.split_for_impl();
        let (_, arguments, _) = self.generics.split_for_impl();
        let message = Ident::new("message", Span::mixed_site());
        let cx = Ident::new("cx", Span::mixed_site());
        let arms = self.cases.iter().map(|case| self.arm(case, &cx));
        let arms = quote!({ let _ = &#cx; match #message { #(#arms)* } });
        let span = this.span();
        let root = tokens::respan(root, span);
        let handle = quote_spanned! {span=>
            async fn handle(
                &mut self,
                #message: #name #arguments,
                #cx: &mut #root::Context<Self>,
            ) -> ::core::result::Result<(), Self::Error> #arms
        };
        let quiet = quiet();
        let body = quote! {
            type Msg = #name #arguments;
            #kept
            #quiet
            #handle
        };
        let body = tokens::braced(body, *braces);
        quote!(#(#attributes)* #impl_token #parameters #actor_trait for #this #bounds #body)
    }

    fn arm(&self, case: &Case<'_>, cx: &Ident) -> TokenStream {
        let Self { root, name, .. } = self;
        let Case {
            name: at,
            handler,
            cfgs,
            ..
        } = case;
        if handler.is_broken {
            return quote!(#cfgs #name::#at(_) => ::core::unreachable!(),);
        }
        let method = &handler.name;
        let cx = handler.takes_context.then(|| quote!(, #cx));
        let (message, reply) = (
            Ident::new("message", Span::mixed_site()),
            Ident::new("reply", Span::mixed_site()),
        );
        // Calls bear the place of the returned type: that is what does not fit, if it does not.
        let span = handler
            .output
            .as_ref()
            .map_or_else(|| method.span(), Spanned::span);
        let output = match &handler.output {
            Some(output) => tokens::qualify(output.to_token_stream(), root),
            None => quote!(()),
        };
        let error = quote!(<Self as #root::Actor>::Error);
        if handler.is_asked {
            let request = &handler.message;
            let request = tokens::qualify(request.to_token_stream(), root);
            let wanted = quote!(<#request as #root::Request>::Reply);
            let check = quote_spanned!(span=> #root::glue::Answer<#wanted, #error>);
            let check = quote_spanned!(span=> <#output as #check>::into_answer);
            quote! {
                #cfgs
                #name::#at(#root::Ask { request: #message, reply: #reply }) => {
                    #reply.send(#check(self.#method(#message #cx).await)?);
                    ::core::result::Result::Ok(())
                }
            }
        } else {
            let check =
                quote_spanned!(span=> <#output as #root::glue::Outcome<#error>>::into_outcome);
            quote!(#cfgs #name::#at(#message) => #check(self.#method(#message #cx).await),)
        }
    }

    fn methods(&self) -> TokenStream {
        let Self { root, cfgs, .. } = self;
        let this = &self.block.this;
        let (parameters, _, bounds) = self.block.generics.split_for_impl();
        let whole = self.cases.iter().filter(|case| !case.handler.is_broken);
        let methods = whole.map(|Case { handler, .. }| {
            let Handler {
                attributes,
                visibility,
                name,
                output,
                ..
            } = handler;
            let arguments = tokens::qualify(handler.arguments.clone(), root);
            let output = output
                .as_ref()
                .map(|output| tokens::qualify(output.to_token_stream(), root));
            let output = output.map(|output| quote!(-> #output));
            let body = tokens::qualify(handler.body.to_token_stream(), root);
            quote!(#(#attributes)* #visibility async fn #name(#arguments) #output #body)
        });
        quote! {
            #cfgs
            #[allow(
                clippy::needless_pass_by_ref_mut, clippy::needless_pass_by_value,
                clippy::unnecessary_wraps, clippy::unused_async, clippy::unused_self,
                reason = "handlers look alike, whatever they need"
            )]
            impl #parameters #this #bounds { #(#methods)* }
        }
    }
}

/// Lints about how paths are written are not for one who cannot see what is imported.
fn quiet() -> TokenStream {
    quote! {
        #[allow(
            clippy::absolute_paths, unused_qualifications,
            reason = "the macro cannot see what is imported"
        )]
    }
}

/// Those parameters of the actor that its messages name, with what is asked of them alone.
fn named_parameters(all: &Generics, cases: &[Case<'_>]) -> Generics {
    let mut named = HashSet::new();
    for case in cases {
        tokens::words(case.sent.clone(), &mut named);
    }
    let unnamed: HashSet<Ident> = all
        .params
        .iter()
        .map(parameter_name)
        .filter(|name| !named.contains(name))
        .collect();
    let is_own = |tokens: TokenStream| {
        let mut words = HashSet::new();
        tokens::words(tokens, &mut words);
        words.is_disjoint(&unnamed)
    };
    let mut own = all.clone();
    own.params = all
        .params
        .iter()
        .filter(|parameter| named.contains(&parameter_name(parameter)))
        .cloned()
        .collect();
    if let Some(clause) = &mut own.where_clause {
        let kept = clause.predicates.iter();
        let kept = kept.filter(|predicate| is_own(predicate.to_token_stream()));
        clause.predicates = kept.cloned().collect();
    }
    own
}

fn parameter_name(parameter: &GenericParam) -> Ident {
    match parameter {
        GenericParam::Type(parameter) => parameter.ident.clone(),
        GenericParam::Const(parameter) => parameter.ident.clone(),
        GenericParam::Lifetime(parameter) => parameter.lifetime.ident.clone(),
    }
}
